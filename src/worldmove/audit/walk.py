"""The live object graph behind an engine and a session: where a walk begins, and everything that it reaches.

Breadth first, because then an object is named by the shortest way to it. What one object shows is in ``look``.
"""

import os
import random
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from worldmove.audit.graph import GENERATORS, Graph, Node
from worldmove.audit.look import look_at
from worldmove.audit.looks import Look

MAX_NODES = 500_000
OURS = "worldmove"
NOT_THEIRS = ("__main__", "__mp_main__", "worldmove.engine.base")


def reachable(engine: Any, session: Any, named: str, before: Iterable[str]) -> Graph:
    """Walk all that a session and its engine reach. ``named``: the module of the command line.

    ``before``: the modules that were there before it was imported.
    """
    modules = own_modules(engine, session, named, before)
    return walk(roots_of(engine, session, modules), modules)


def walk(roots: Mapping[str, Any], own_modules: Iterable[str]) -> Graph:
    """Return the graph of all that the roots reach. ``own_modules``: those whose classes and variables are walked."""
    return Walk(roots, frozenset(own_modules)).graph()


class Walk:
    """One walk. It holds on to all that it saw, so that no address is used twice."""

    def __init__(self, roots: Mapping[str, Any], own_modules: frozenset[str]) -> None:
        self.objects: list[Any] = []
        self.looks: list[Look] = []
        self.paths: list[str] = []
        self.parents: list[int] = []
        self.parts: list[list[tuple[str, int]]] = []
        self._raw: list[str] = []
        self._own = own_modules
        self._seen: dict[int, int] = {}
        self._taken: dict[str, int] = {}
        self._num_roots = len(roots)
        for name, root in roots.items():
            self._add(name, root, parent=0)
        index = 0
        while index < len(self.objects) and len(self.objects) < MAX_NODES:
            self._open(index)
            index += 1
        self._complete = index == len(self.objects)

    def graph(self) -> Graph:
        """Return what was seen, without the objects."""
        nodes = [
            Node(path, look.kind, look.value, look.num_bytes, parent, look.whole, tuple(parts))
            for path, look, parent, parts in zip(self.paths, self.looks, self.parents, self.parts, strict=True)
        ]
        return Graph(nodes=nodes, num_roots=self._num_roots, complete=self._complete)

    def _open(self, index: int) -> None:
        for part in self.looks[index].parts:
            self.parts[index].append((part.label, self._number(part.path, part.value, parent=index)))

    def _number(self, path: str, value: Any, *, parent: int) -> int:
        known = self._seen.get(id(value))
        return self._add(path, value, parent=parent) if known is None else known

    def _add(self, path: str, value: Any, *, parent: int) -> int:
        look = look_at(value, path, self._own)
        self.objects.append(value)
        self.looks.append(look)
        self.paths.append(self._path(path, parent))
        self._raw.append(path)
        self.parents.append(parent)
        self.parts.append([])
        if look.has_identity:
            self._seen[id(value)] = len(self.objects) - 1
        return len(self.objects) - 1

    def _path(self, path: str, parent: int) -> str:
        """Two closures of one function have one name: the second is told apart by a number.

        What an object holds without a name for it (a method its self) has the path of the object.
        """
        if self._raw and path == self._raw[parent]:
            return self.paths[parent]
        self._taken[path] = self._taken.get(path, 0) + 1
        return path if self._taken[path] == 1 else f"{path} ({self._taken[path]})"


def own_modules(engine: Any, session: Any, named: str, before: Iterable[str]) -> list[str]:
    """Return the modules that may hold state of the engine: those of its packages, and those that it brought.

    ``named``: the module of the command line. ``before``: the modules that were there before it was imported. What
    lies among Python's own files or the installed libraries is not the engine's, unless it is its own package.
    """
    packages = {_package(kind.__module__) for value in (engine, session) for kind in type(value).__mro__}
    theirs = {package for package in packages if not _is_installed(package)} | {_package(named)}
    old = frozenset(before)
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name not in NOT_THEIRS
        and (package := _package(name))
        and (package in theirs or (name not in old and not _is_library(module) and not _is_installed(package)))
    )


def roots_of(engine: Any, session: Any, modules: Iterable[str]) -> dict[str, Any]:
    """Return what a walk starts from, by the name that its paths begin with; the shortest ways first."""
    generators = {
        f"{GENERATORS}torch": torch.default_generator,
        f"{GENERATORS}random": random.random.__self__,  # type: ignore[attr-defined]
        f"{GENERATORS}numpy": np.random.mtrand._rand,
    }
    return {"session": session, "engine": engine, **{name: sys.modules[name] for name in modules}, **generators}


def _package(module: str) -> str:
    """The package that a module's code belongs to: the topmost one, and in this project the engine's folder."""
    parts = module.split(".")
    if parts[0] == OURS:
        return ".".join(parts[:3]) if parts[1:2] == ["engine"] and parts[2:3] != ["base"] else ""
    return parts[0]


def _is_installed(package: str) -> bool:
    module = sys.modules.get(package)
    return module is None or _is_library(module)


def _is_library(module: Any) -> bool:
    """Say whether a module came with Python or was installed beside it."""
    file = getattr(module, "__file__", None)
    return file is None or _lies_in_a_library(file)


@cache
def _lies_in_a_library(file: str) -> bool:
    return os.path.realpath(file).startswith(_libraries())


@cache
def _libraries() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
