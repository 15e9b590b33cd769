"""The project's own files agree: what is imported is declared, and what is declared is pinned."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]

IMPORTED_AS = {"pillow": "PIL"}
BEHIND = {"cuda": "torch", "starlette": "fastapi"}  # torch for CUDA brings cuda-bindings
"""What may be imported though only the package that brings it is declared."""


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def _imported_roots(folder: Path) -> dict[str, str]:
    """The top-level packages that a folder imports, each with one file that does."""
    roots = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import():
                    found = [alias.name for alias in node.names]
                case ast.ImportFrom(level=0, module=str(module)):
                    found = [module]
                case _:
                    continue
            roots.update({name.partition(".")[0]: str(path.relative_to(ROOT)) for name in found})
    return roots


def _undeclared(folder: Path, requirements: list[str]) -> dict[str, str]:
    names = [_name(requirement) for requirement in requirements]
    known = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    known |= {brought for brought, by in BEHIND.items() if by in names}
    known |= sys.stdlib_module_names | {"worldmove", "tests", "bench", "training"}
    return {name: where for name, where in _imported_roots(folder).items() if name not in known}


def test_the_package_imports_only_what_it_declares() -> None:
    assert _undeclared(ROOT / "src", PROJECT["dependencies"]) == {}


def test_the_tests_import_only_what_the_test_extra_declares() -> None:
    requirements = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    assert _undeclared(ROOT / "tests", requirements) == {}


def test_every_direct_dependency_is_pinned_once() -> None:
    extras = PROJECT["optional-dependencies"].values()
    declared = [_name(requirement) for group in (PROJECT["dependencies"], *extras) for requirement in group]
    assert sorted(_name(pin) for pin in PINS) == sorted(declared)


def test_every_pin_is_exact() -> None:
    assert [pin for pin in PINS if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []
