"""The edge: how a worker's process comes to its end, and that it does."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from worldmove.worker.process_log import END_S
from worldmove.worker.standard_streams import written_out
from worldmove.worker.uplink import Uplink


class Ending:
    """How the process comes to its end: told to, or because something failed."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self.reached = asyncio.Event()
        self.has_failed = False
        self.leave: Callable[[], None] | None = None
        """What to do at a first signal, once there is a worker."""
        self.holds: Callable[[], bool] = lambda: False
        """Whether there is anything to be left."""
        self._log = log

    def at_a_signal(self, uplink: Uplink) -> None:
        """Leave, at the first one, if that can be; end at once at any other."""
        if self.leave is not None and (uplink.connection is not None or self.holds()):
            leave, self.leave = self.leave, None
            leave()
        else:
            self.reached.set()

    def failed(self, task: str, error: BaseException) -> None:
        """Something failed without which there is no worker."""
        self._log.error("task_failed", task=task, exc_info=error)
        self.has_failed = True
        self.reached.set()

    def faulted(self, task: str, error: BaseException) -> None:
        """One session's conduct failed: nothing else ends."""
        self._log.error("session_failed", task=task, exc_info=error)


def exit_after(within_s: float, log: FilteringBoundLogger) -> None:
    """End this process after a time, unless it has ended by then: whatever its threads and its event loop do."""

    def end() -> None:
        log.error("worker_ended", clean=False, why=f"something has not returned within {within_s:g} s")
        written_out(sys.stderr, END_S)
        os._exit(1)

    timer = threading.Timer(within_s, end)
    timer.daemon = True
    timer.start()
