"""Engines by name: what a worker's configuration says is what its process builds."""

from importlib import import_module
from typing import Any

from worldmove.engine.base import Engine
from worldmove.engine.made import required
from worldmove.engine.named import ENGINES
from worldmove.engine.raised import is_a_persons, said
from worldmove.engine.scattered import ScatteredEngine
from worldmove.errors import UserError, WorldMoveError


def build_engine(name: str, num_threads: int) -> Engine[Any]:
    """Build ``reference:PRESET``, or call ``python:package.module:factory`` with the number of threads.

    ``scattered:NAME`` is either, with every tensor bound anew at each block (``engine.scattered``).
    Raises UserError for a name that is neither, or of what makes no engine, WeightsError for weights that are not the
    pinned ones.
    """
    kind, _, rest = name.partition(":")
    if name in ENGINES:
        return ENGINES[name](num_threads)
    if kind == "scattered":
        return ScatteredEngine(build_engine(rest, num_threads))
    if kind == "python" and rest.count(":") == 1:
        return required(name, _made(name, _imported(name, *rest.split(":")), num_threads))
    raise UserError(f"there is no engine {name}; there are {', '.join(ENGINES)}, and python:package.module:factory")


def _imported(name: str, module: str, factory: str) -> Any:
    try:
        return getattr(import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise UserError(f"the engine {name} cannot be imported: {error}") from error
    except BaseException as error:  # it is somebody else's module: it may raise what it likes
        if is_a_persons(error):
            raise
        raise UserError(f"the engine {name} cannot be imported: importing {module} raised {said(error)}") from error


def _made(name: str, factory: Any, num_threads: int) -> Any:
    if not callable(factory):
        raise UserError(
            f"the engine {name} cannot be made: it is of type {type(factory).__name__}, and cannot be called"
        )
    try:
        return factory(num_threads)
    except WorldMoveError:
        raise
    except BaseException as error:
        if is_a_persons(error):
            raise
        raise UserError(f"the engine {name} cannot be made: calling it raised {said(error)}") from error
