"""Whether what somebody's module gives is an engine: asked before anything is begun with it."""

from typing import Any

from worldmove.engine.base import Engine, EngineSpec
from worldmove.engine.raised import is_a_persons, said
from worldmove.engine.spec_checks import fault_of
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
    except BaseException as error:
        if is_a_persons(error):
            raise
        raise UserError(f"{name} is no engine: its spec raised {said(error)}.") from error
    if not isinstance(spec, EngineSpec):
        raise UserError(f"{name} is no engine: its spec is no EngineSpec, and of type {type(spec).__name__}.")
    if (fault := fault_of(spec)) is not None:
        raise UserError(f"{name} cannot be served: {fault}.")
    engine: Engine[Any] = made
    return engine
