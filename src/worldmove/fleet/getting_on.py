"""Waiting for what somebody was asked for, for as long as they get on with it, whatever that comes to in all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

LOOKS = 8
"""By so many looks it has to have stood still. Time in which this server itself did not run counts as one."""


@asynccontextmanager
async def while_it_gets_on(how_far: Callable[[], int], within_s: float) -> AsyncIterator[None]:
    """Raise TimeoutError inside once ``how_far`` has not changed for so long."""
    loop = asyncio.get_running_loop()
    before, num_quiet = how_far(), 0
    timer: asyncio.TimerHandle | None = None
    async with asyncio.timeout(None) as limit:

        def look() -> None:
            nonlocal before, num_quiet, timer
            now = how_far()
            num_quiet = num_quiet + 1 if now == before else 0
            before = now
            if num_quiet == LOOKS:
                limit.reschedule(loop.time())
            else:
                timer = loop.call_later(within_s / LOOKS, look)

        timer = loop.call_later(within_s / LOOKS, look)
        try:
            yield
        finally:
            timer.cancel()
