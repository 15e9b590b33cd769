"""Whether what somebody's module gives is an engine: asked before anything is begun with it."""

from typing import Any

from worldmove.engine.base import Engine, EngineSpec
from worldmove.errors import UserError

MEMBERS = ("spec", "state_types", "warm_up", "open", "step", "quiesce", "state", "install")


def required(name: str, made: Any) -> Engine[Any]:
    """Return it. Raises UserError, in one sentence, where it is none; ``name`` is what it was asked for by."""
    lacking = [member for member in MEMBERS if not hasattr(type(made), member) and not hasattr(made, member)]
    if lacking:
        raise UserError(
            f"{name} is no engine: {type(made).__name__} has no {', '.join(lacking)}; see worldmove.engine.base."
        )
    try:
        spec = made.spec
    except (Exception, SystemExit) as error:
        raise UserError(f"{name} is no engine: its spec raised {said(error)}.") from error
    if not isinstance(spec, EngineSpec):
        raise UserError(f"{name} is no engine: its spec is no EngineSpec, and of type {type(spec).__name__}.")
    engine: Engine[Any] = made
    return engine


def said(error: BaseException) -> str:
    """Return an exception as a part of a sentence."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
