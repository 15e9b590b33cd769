"""An engine is foreign code: whatever it raises ends what it was asked for, and nothing beside that."""

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager

from worldmove.errors import EngineFailed, StateRefused, WorldMoveError

RAISED = (Exception, SystemExit, CancelledError)
"""What an engine may raise. A cancel is its own: in its thread nobody else's is raised, and taken for that of whoever
waits it would end them without a word, with the session's slot taken for ever."""


@contextmanager
def engine_asked(what: str) -> Iterator[None]:
    """Call a foreign engine: whatever it raises ends this attempt, and neither the worker nor its other sessions."""
    try:
        yield
    except WorldMoveError:
        raise
    except RAISED as error:
        raise StateRefused("", f"the engine could not {what}: {_text_of(error)}") from error


@contextmanager
def engine_trusted(what: str) -> Iterator[None]:
    """Call a foreign engine where nothing else can be done: whatever it raises ends this session, and no other.

    Raises EngineFailed.
    """
    try:
        yield
    except WorldMoveError:
        raise
    except RAISED as error:
        raise EngineFailed(f"the engine failed to {what}: {_text_of(error)}"[:2000]) from error


def _text_of(error: BaseException) -> str:
    """Return what an engine raised in words, also where that raises in its turn."""
    try:
        return repr(error)
    except RAISED:
        return type(error).__name__
