"""An engine is foreign code: whatever it raises ends what it was asked for, and nothing beside that.

Whatever: an exit, a cancel, an interrupt, a kind of its own. In its thread nobody else raises one, and each of them,
let through, would mean something to whoever waits: a cancel ends them without a word, an interrupt ends the worker.
Only in the main thread an interrupt is somebody's (``engine.raised``). So nothing is awaited while an engine is called.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from worldmove import errors
from worldmove.engine.raised import is_a_persons, shown
from worldmove.errors import EngineFailed, StateRefused, TransportError, WorldMoveError

MAX_WORDS = 2000
OURS = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, WorldMoveError))


@contextmanager
def engine_asked(what: str) -> Iterator[None]:
    """Call a foreign engine: whatever it raises ends this attempt, and neither the worker nor its other sessions.

    Raises StateRefused.
    """
    with _called(lambda words: StateRefused("", f"the engine could not {what}: {words}"[:MAX_WORDS])):
        yield


@contextmanager
def engine_trusted(what: str) -> Iterator[None]:
    """Call a foreign engine where nothing else can be done: whatever it raises ends this session, and no other.

    Raises EngineFailed.
    """
    with _called(lambda words: EngineFailed(f"the engine failed to {what}: {words}"[:MAX_WORDS])):
        yield


@contextmanager
def failures_only() -> Iterator[None]:
    """Do what a thread was given: failures get out of it and nothing else, also where an engine was called unawares.

    An event loop takes the rest for its own, and waits for ever for what StopIteration has ended. Raises EngineFailed.
    """
    try:
        yield
    except BaseException as error:
        if issubclass(type(error), Exception) and not issubclass(type(error), StopIteration):
            raise
        raise EngineFailed(f"an engine's code raised {shown(error)}"[:MAX_WORDS]) from error


@contextmanager
def _called(told: Callable[[str], WorldMoveError]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if _is_ours(error) or is_a_persons(error):
            raise
        words = shown(error)
        if issubclass(type(error), TransportError):  # of a device's driver, beneath an engine
            raise TransportError(words[:MAX_WORDS]) from error
        raise told(words) from error


def _is_ours(error: BaseException) -> bool:
    """Whether it is one of ours, in words of ours. A kind that an engine derives from one is its own."""
    return type(error) in OURS and all(map(_is_plain, error.args))


def _is_plain(arg: object) -> bool:
    """Whether it can be said: an int may have more digits than Python writes."""
    return type(arg) is str or (type(arg) is int and abs(arg) < 1 << 64)
