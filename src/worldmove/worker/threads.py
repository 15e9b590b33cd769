"""The edge for blocking work: one thread that runs functions one after another, away from the event loop."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class OneThread:
    """A ``Blocking`` of one named thread.

    A caller that is cancelled waits until its function is done: otherwise the function would go on writing
    a session's memory after whoever cancelled believes that it is still.
    """

    def __init__(self, name: str, *, niceness: int = 0) -> None:
        """``niceness``, 0 to 19: how far it steps back where others want its core. On Linux each thread has its own."""
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=name, initializer=_step_back, initargs=(niceness,)
        )
        # Begun now: later, at a limit of memory or of threads, it could not be, and whoever is played here would end.
        self._executor.submit(lambda: None)

    async def __call__(self, function: Callable[[], T], /) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._executor, function)
        ended = asyncio.Event()
        future.add_done_callback(lambda _: ended.set())
        cancelled: asyncio.CancelledError | None = None
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            future.exception()  # retrieved, so that a failure behind a cancel is not reported as forgotten
            raise cancelled
        return future.result()

    def close(self) -> None:
        """Wait for the function in hand and end the thread."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def _step_back(niceness: int) -> None:
    if niceness:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
