"""Layers: an import points to its own layer or to one below, and no two files import each other.

Imports inside functions, under ``TYPE_CHECKING`` and by a constant name at run time count like any other: a
hidden import is how a cycle begins.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = "worldmove"

ROOTS = frozenset({PACKAGE, "errors", "limits", "small_file", "units"})
CARRIED = ROOTS | {"state", "codec", "transport"}
MOVING = CARRIED | {"move"}

BELOW: Mapping[str, frozenset[str]] = {
    PACKAGE: frozenset(),  # the package's own file: its version
    "errors": frozenset({PACKAGE}),
    "limits": frozenset({PACKAGE}),
    "small_file": frozenset({PACKAGE}),
    "units": frozenset({PACKAGE, "errors"}),
    "state": ROOTS,
    "codec": ROOTS | {"state"},
    "engine": ROOTS | {"state"},
    "audit": ROOTS | {"state", "engine"},  # engines alone: nothing of it is part of a move
    "transport": ROOTS | {"state"},
    "move": CARRIED,  # never engine: a move knows bytes, not what they generate
    "worker": MOVING | {"engine"},
    "fleet": MOVING | {"engine", "worker"},
    "serve": MOVING | {"engine", "worker", "fleet"},
    "cli": MOVING | {"engine", "audit", "worker", "fleet", "serve"},
}

Modules = Mapping[str, Path]
Graph = Mapping[str, Mapping[str, int]]
"""Module -> the modules that it imports, each with the line that does it first."""


def find_modules(source: Path) -> dict[str, Path]:
    """Every module under ``source`` by its dotted name; a package is named by its ``__init__.py``."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def _base(module: str, path: Path, node: ast.ImportFrom) -> str:
    """The absolute name that ``from ... import`` starts from."""
    if not node.level:
        return node.module or ""
    steps = node.level - (path.name == "__init__.py")
    above = module.split(".")[: -steps or None]
    return ".".join([*above, *([node.module] if node.module else [])])


def _dynamic(node: ast.Call) -> str | None:
    """The module that ``import_module("...")`` or ``__import__("...")`` names, if it is a constant."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    named = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value
    return named if function in {"import_module", "__import__"} and isinstance(named, str) else None


def _imported(module: str, path: Path, node: ast.AST) -> list[str]:
    """The dotted names that one node imports; a name taken from a module counts as that module's child."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            return [f"{_base(module, path, node)}.{alias.name}" for alias in node.names]
        case ast.Call():
            named = _dynamic(node)
            return [named] if named else []
    return []


def find_imports(modules: Modules) -> Graph:
    """Who imports whom among ``modules``."""
    graph: dict[str, dict[str, int]] = {}
    for module, path in modules.items():
        targets = graph.setdefault(module, {})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            for name in _imported(module, path, node):
                target = name if name in modules else name.rpartition(".")[0]
                if target in modules and target != module:
                    targets.setdefault(target, getattr(node, "lineno", 0))
    return graph


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def upward(graph: Graph) -> Iterator[str]:
    """A sentence for each import that does not point down."""
    for module, targets in graph.items():
        for target, line in targets.items():
            own, other = layer_of(module), layer_of(target)
            if other != own and other not in BELOW[own]:
                yield f"{module}, line {line}: {own} must not import {other} ({target})"


def find_cycle(graph: Graph) -> list[str]:
    """The modules of one import cycle, or an empty list."""
    done: dict[str, None] = {}

    def visit(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return trail[trail.index(module) :]
        if module in done:
            return []
        found = next(filter(None, (visit(target, [*trail, module]) for target in graph[module])), [])
        done[module] = None
        return found

    return next(filter(None, (visit(module, []) for module in graph)), [])


def _tree(root: Path, files: Mapping[str, str]) -> Graph:
    """The imports of a small package written under ``root``."""
    for name, text in files.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return find_imports(find_modules(root))


def test_every_import_points_to_its_own_layer_or_below() -> None:
    assert list(upward(find_imports(find_modules(SOURCE)))) == []


def test_no_files_import_each_other() -> None:
    assert find_cycle(find_imports(find_modules(SOURCE))) == []


def test_every_folder_and_file_of_the_package_belongs_to_a_layer() -> None:
    assert sorted({layer_of(module) for module in find_modules(SOURCE)} - BELOW.keys()) == []


def test_layers_do_not_stand_on_each_other_in_a_circle() -> None:
    assert find_cycle({layer: dict.fromkeys(sorted(below), 0) for layer, below in BELOW.items()}) == []


@pytest.mark.parametrize(
    "hidden",
    [
        "def work():\n    from worldmove.engine import base\n",
        "def work():\n    from ..engine.base import Engine\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import worldmove.engine.base\n",
        "import importlib\ndef work():\n    importlib.import_module('worldmove.engine.base')\n",
    ],
)
def test_an_upward_import_is_found_wherever_it_hides(tmp_path: Path, hidden: str) -> None:
    files = {"move/__init__.py": "", "move/source.py": hidden, "engine/__init__.py": "", "engine/base.py": ""}
    found = list(upward(_tree(tmp_path, files)))
    assert len(found) == 1
    assert "worldmove.move.source" in found[0]
    assert "move must not import engine" in found[0]


def test_a_downward_import_is_let_pass(tmp_path: Path) -> None:
    files = {"worker/loop.py": "from worldmove.move import source\n", "move/__init__.py": "", "move/source.py": ""}
    graph = _tree(tmp_path, files)
    assert list(graph["worldmove.worker.loop"]) == ["worldmove.move.source"]
    assert list(upward(graph)) == []


def test_a_cycle_is_found_though_half_of_it_hides_in_a_function(tmp_path: Path) -> None:
    files = {
        "state/__init__.py": "",
        "state/leaf.py": "from worldmove.state.tree import walk\n",
        "state/tree.py": "def walk():\n    from . import arena\n",
        "state/arena.py": "from .leaf import Leaf\n",
    }
    cycle = find_cycle(_tree(tmp_path, files))
    assert sorted(cycle) == ["worldmove.state.arena", "worldmove.state.leaf", "worldmove.state.tree"]


def test_a_package_that_imports_its_own_files_is_no_cycle_by_itself(tmp_path: Path) -> None:
    files = {
        "codec/__init__.py": "from .base import Codec\n",
        "codec/base.py": "",
        "codec/tiered.py": "from .base import X\n",
    }
    assert find_cycle(_tree(tmp_path, files)) == []
