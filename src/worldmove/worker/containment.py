"""What happens where the conduct of one session fails as nobody foresaw: its part here ends, and no other.

Rules:

1. It is a bug of ours, so it is never silent: the log has it with its traceback, and the server counts it.
2. What its task was at is in a state that nobody can vouch for. So its session ends here, as if an engine had raised:
   its drivers are stopped, the other end and the controller are told, and its copy is let go. Only a source that has
   sent no proof plays on: its move alone is over (``worker.drivers``).
3. A path that cannot be let go of keeps the slot in quarantine. What else fails in that ends the worker, and so does
   what belongs to no session.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from worldmove.errors import WorldMoveError
from worldmove.move.sayable import said
from worldmove.worker.background import Background
from worldmove.worker.messages import Fault


async def _nothing(session: str, why: str) -> None:
    """Before there is a worker, no session has a part in it."""


class Containment:
    """One worker's: the place where a failure of one session's conduct stops."""

    def __init__(
        self, background: Background, *, send: Callable[[Fault], None], on_fault: Callable[[str, BaseException], None]
    ) -> None:
        """``on_fault`` hears of every failure that is contained: the log, and whoever takes none for acceptable."""
        self.end_part: Callable[[str, str], Coroutine[Any, Any, None]] = _nothing
        """Ends a session's part here, for a reason that the server is told."""
        self._background = background
        self._send = send
        self._on_fault = on_fault

    def start(self, task: str, session: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task of one session beside everything else, under the name "task session"."""
        return self._background.start(
            f"{task} {session}", work, contained=lambda error: self.failed(task, session, error)
        )

    def beside(self, task: str, session: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what a session's part here has no share in any more, under the name "task session".

        What a path cannot do is no failure of ours: whoever waits for it hears of it.
        """

        def contained(error: BaseException) -> None:
            if not isinstance(error, WorldMoveError):
                self.report(task, session, error)

        return self._background.start(f"{task} {session}", work, contained=contained)

    @contextmanager
    def of(self, task: str, session: str, *, is_over: bool = False) -> Iterator[None]:
        """Do something for one session. ``is_over``: its part here is being ended already."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (rule 2: whatever it is, no other session has a part in it)
            (self.report if is_over else self.failed)(task, session, error)

    def failed(self, task: str, session: str, error: BaseException) -> None:
        """A task of a session has failed: end its part."""
        why = self.report(task, session, error)
        self._background.start(f"contain {session}", self.end_part(session, why))

    def report(self, task: str, session: str, error: BaseException) -> str:
        """Log and count a failure, and return a sentence about it."""
        self._on_fault(f"{task} {session}", error)
        why = said(f"its conduct failed ({task}: {error!r}); the worker's log says more")
        self._send(Fault(session=session, task=task, message=why))
        return why
