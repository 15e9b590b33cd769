"""What happens where the controller fails at one session as nobody foresaw: the others go on.

It is a bug of ours: it is logged with its traceback and counted, and what was being done is left. A word of a worker
is as if it had been lost on its way, and a recovery is begun again after a while. A move is broken off.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from worldmove.fleet.counters import Counters

AGAIN_S = 5.0
"""Until what has failed, and must not be left, is tried again."""


class Containment:
    """One controller's: the place where such a failure stops."""

    def __init__(self, counters: Counters, log: Callable[[str, dict[str, object]], None]) -> None:
        self._counters = counters
        self._log = log

    @contextmanager
    def of(self, task: str, session: str) -> Iterator[None]:
        """Do something for one session, or for one worker where it is of none."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
            self.failed(task, session, error)

    def failed(self, task: str, session: str, error: BaseException) -> None:
        """Log and count a failure."""
        self._counters.failed("controller", task)
        self._log("task_failed", {"task": task, "session": session, "error": repr(error), "exc_info": error})
