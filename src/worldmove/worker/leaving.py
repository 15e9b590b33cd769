"""How long a worker that was told to end waits for its sessions to be moved away."""

import asyncio
from collections.abc import Callable

LOOK_S = 0.2


async def getting_away(num_held: Callable[[], int], within_s: float) -> None:
    """Return when no copy has gone from here for so long."""
    clock = asyncio.get_running_loop().time
    left, ends_at = num_held(), clock() + within_s
    while clock() < ends_at:
        await asyncio.sleep(min(LOOK_S, max(0.0, ends_at - clock())))
        if (now := num_held()) < left:
            ends_at = clock() + within_s
        left = now
