"""How a worker notices that nothing comes over a link that is open all the same: cut one way, or its server hangs.

A server sends a beat twice a second. Where none comes for long, the link is given up and another is made; nothing is
concluded about any session. Time in which this process itself did not run (stopped, or its host slept) counts for
nobody: what has arrived meanwhile is heard first.
"""

import asyncio
from collections.abc import Callable

LOOKS = 8


async def until_silent(num_heard: Callable[[], int], silence_s: float) -> None:
    """Return once the count of what was heard has stood still for so long, by as many looks of this process."""
    before, num_quiet = num_heard(), 0
    while num_quiet < LOOKS:
        await asyncio.sleep(silence_s / LOOKS)
        now = num_heard()
        num_quiet = num_quiet + 1 if now == before else 0
        before = now
