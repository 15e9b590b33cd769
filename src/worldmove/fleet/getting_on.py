"""Waiting for what a worker was asked for, for as long as it gets on with it, whatever that comes to in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from worldmove.fleet.workers import WorkerRecord

LOOKS = 8
"""By so many looks it has to have stood still. Time in which this server itself did not run counts as one."""


@asynccontextmanager
async def while_it_gets_on(worker: WorkerRecord, within_s: float) -> AsyncIterator[None]:
    """Raise TimeoutError inside once the worker has got nothing done for so long of all that it was asked for.

    It says twice a second how far it is.
    """
    loop = asyncio.get_running_loop()
    before, num_quiet = worker.num_done, 0
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as limit:

        def look() -> None:
            nonlocal before, num_quiet, timer
            num_quiet = num_quiet + 1 if worker.num_done == before else 0
            before = worker.num_done
            if num_quiet == LOOKS:
                limit.reschedule(loop.time())
            else:
                timer = loop.call_later(within_s / LOOKS, look)

        timer = loop.call_later(within_s / LOOKS, look)
        try:
            yield
        finally:
            timer.cancel()
