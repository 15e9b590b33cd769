"""The engine that a command line names: ``package.module:attribute``, where the attribute is or makes an engine."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from worldmove.engine.base import Engine
from worldmove.engine.made import MEMBERS, required
from worldmove.engine.raised import is_a_persons, said
from worldmove.errors import UserError, WorldMoveError

PREFIX = "python:"
"""How ``serve --engine`` begins such a name."""

NUM_THREADS = 1
"""Of one block's arithmetic: an audit forks, and a pool of threads does not survive that."""


def find_engine(name: str) -> Engine[Any]:
    """Import what a name says and make the engine. Raises UserError, in one sentence, where there is none."""
    module, attribute = split(name)
    found = _attribute(name, _module(name, module), attribute)
    engine = _made(name, found) if callable(found) and not _is_instance(found) else found
    return required(name, engine)


def split(name: str) -> tuple[str, str]:
    """Return module and attribute. Raises UserError for a name of another form."""
    # torch takes seconds to import: the commands that look at no engine do not pay for it.
    from worldmove.engine.named import ENGINES  # noqa: PLC0415

    if name in ENGINES:
        return ENGINES[name].__module__, ENGINES[name].__name__
    module, colon, attribute = name.removeprefix(PREFIX).partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))) or not colon:
        raise UserError(f"{name} names no engine; write package.module:attribute.")
    return module, attribute


def _module(name: str, module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{name} cannot be audited: there is no module {error.name}.") from error
        raise UserError(f"{name} cannot be audited: {module} needs {error.name}, which is not there.") from error
    except BaseException as error:
        if is_a_persons(error):
            raise
        raise UserError(f"{name} cannot be audited: importing {module} raised {said(error)}.") from error


def _attribute(name: str, found: Any, attribute: str) -> Any:
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UserError(f"{name} cannot be audited: {getattr(found, '__name__', found)} has no {part}.")
        found = getattr(found, part)
    return found


def _is_instance(found: Any) -> bool:
    """Say whether this is an engine itself, though it may be called too."""
    return not inspect.isclass(found) and all(hasattr(found, member) for member in MEMBERS)


def _made(name: str, maker: Callable[..., Any]) -> Any:
    arguments, options = _arguments(name, maker)
    try:
        return maker(*arguments, **options)
    except WorldMoveError:
        raise
    except BaseException as error:
        if is_a_persons(error):
            raise
        raise UserError(f"{name} cannot be audited: making the engine raised {said(error)}.") from error


def _arguments(name: str, maker: Callable[..., Any]) -> tuple[tuple[int, ...], dict[str, int]]:
    """Give the number of threads to a maker that takes it: by that name, or as its only necessary argument."""
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return (), {}
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    necessary = [p for p in parameters.values() if p.default is p.empty and p.kind not in optional]
    if "num_threads" in parameters and all(p.name == "num_threads" for p in necessary):
        return (), {"num_threads": NUM_THREADS}
    if len(necessary) == 1 and necessary[0].kind is not inspect.Parameter.KEYWORD_ONLY and not inspect.isclass(maker):
        return (NUM_THREADS,), {}
    if necessary:
        needs = ", ".join(p.name for p in necessary)
        raise UserError(f"{name} cannot be made without {needs}; name a function that needs nothing but num_threads.")
    return (), {}
