"""Where the gateway fails at one session as nobody foresaw: that world is ended for its players, and no other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

CallT = TypeVar("CallT", bound=Callable[..., Any])


class Fails(Protocol):
    """Whose calls are contained."""

    def failed(self, task: str, session: str, error: BaseException) -> None:
        """Log and count it, and end this session for its players."""
        ...


@contextmanager
def containing(whose: Fails, task: str, session: str) -> Iterator[None]:
    """Do something for one session."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
        whose.failed(task, session, error)


def contained(call: CallT) -> CallT:
    """Wrap a call about the session that is its first argument: one that fails answers None, as if nothing were known.

    Whoever calls is at work for every session: the controller that hears of a worker's death, say.
    """

    @wraps(call)
    def contains(self: Fails, session: str, *args: Any, **options: Any) -> Any:
        try:
            return call(self, session, *args, **options)
        except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
            self.failed(call.__name__, session, error)

    return cast("CallT", contains)
