"""Engines by name: what a worker's configuration says is what its process builds."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from worldmove.engine.base import Engine
from worldmove.engine.named import ENGINES
from worldmove.engine.scattered import ScatteredEngine
from worldmove.errors import UserError


def build_engine(name: str, num_threads: int) -> Engine[Any]:
    """Build ``reference:PRESET``, or call ``python:package.module:factory`` with the number of threads.

    ``scattered:NAME`` is either, with every tensor bound anew at each block (``engine.scattered``).
    Raises UserError for a name that is neither, WeightsError for weights that are not the pinned ones.
    """
    kind, _, rest = name.partition(":")
    if name in ENGINES:
        return ENGINES[name](num_threads)
    if kind == "scattered":
        return ScatteredEngine(build_engine(rest, num_threads))
    if kind == "python" and rest.count(":") == 1:
        return _imported(name, *rest.split(":"))(num_threads)
    raise UserError(f"there is no engine {name}; there are {', '.join(ENGINES)}, and python:package.module:factory")


def _imported(name: str, module: str, factory: str) -> Callable[[int], Engine[Any]]:
    try:
        found: Callable[[int], Engine[Any]] = getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the engine {name} cannot be imported: {error}") from error
    return found
