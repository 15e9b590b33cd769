"""Where a walk begins: the session, the engine, the engine's own modules, and the process's own generators."""

import random
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

OURS = "worldmove"
NOT_THEIRS = ("__main__", "__mp_main__", "worldmove.engine.base")
GENERATORS = "the process's generator: "


def own_modules(engine: Any, session: Any, named: str, before: Iterable[str]) -> list[str]:
    """Return the modules that may hold state of the engine: those of its packages, and those that it brought.

    ``named``: the module of the command line. ``before``: the modules that were there before it was imported. What
    lies among Python's own files or the installed libraries is not the engine's, unless it is its own package.
    """
    classes = [kind for value in (engine, session) for kind in type(value).__mro__]
    packages = {_package(kind.__module__) for kind in classes} | {_package(named)}
    packages = {package for package in packages if package and not _is_installed(package)} | {_package(named)}
    packages.discard("")
    old = frozenset(before)
    found = []
    for name, module in list(sys.modules.items()):
        inside = any(f"{name}.".startswith(f"{package}.") for package in packages)
        brought = (
            name not in old and _package(name) != "" and not _is_library(module) and not _is_installed(_package(name))
        )
        if isinstance(module, ModuleType) and (inside or brought) and name not in NOT_THEIRS:
            found.append(name)
    return sorted(found)


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
    return any(Path(file).resolve().is_relative_to(place) for place in _libraries())


@cache
def _libraries() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
