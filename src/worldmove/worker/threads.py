"""The edge for blocking work: one thread that runs functions one after another, away from the event loop."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from worldmove.state.shortage import shortage_told
from worldmove.worker.foreign import failures_only
from worldmove.worker.profile import Profile

T = TypeVar("T")


class OneThread:
    """A ``Blocking`` of one named thread.

    A caller that is cancelled waits until its function is done: otherwise the function would go on writing
    a session's memory after whoever cancelled believes that it is still. Where a function finds no memory, that is
    raised as NoMemory; where it raises what is no failure, an interrupt say, as EngineFailed.
    """

    def __init__(self, name: str, *, niceness: int = 0, profile: Profile | None = None) -> None:
        """``niceness``, 0 to 19: how far it steps back where others want its core. On Linux each thread has its own.

        ``profile`` hears what each function took.
        """
        self._name = name
        self._profile = profile if profile is not None and profile.is_wanted else None
        self._executor = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix=name, initializer=_step_back, initargs=(niceness,)
        )
        # Begun now: later, at a limit of memory or of threads, it could not be, and whoever is played here would end.
        self._executor.submit(lambda: None)

    async def __call__(self, function: Callable[[], T], /) -> T:
        if self._profile is None:
            return await self._run(function)
        spent, loop_cpu_s = {"asked": time.monotonic()}, time.thread_time()
        try:
            return await self._run(partial(_timed, function, spent))
        finally:
            spent |= {"resumed": time.monotonic(), "loop_cpu_s": time.thread_time() - loop_cpu_s}
            self._profile.job(self._name, function, spent)

    async def _run(self, function: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._executor, partial(_contained, function))
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
        with shortage_told():
            return future.result()

    def close(self) -> None:
        """Wait for the function in hand and end the thread."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def _contained(function: Callable[[], T]) -> T:
    with failures_only():
        return function()


def _timed(function: Callable[[], T], spent: dict[str, float]) -> T:
    """Run it, and note when it began and ended, and the CPU time of this thread."""
    spent["began"], cpu_s = time.monotonic(), time.thread_time()
    try:
        return function()
    finally:
        spent |= {"ended": time.monotonic(), "cpu_s": time.thread_time() - cpu_s}


def _step_back(niceness: int) -> None:
    if niceness:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
