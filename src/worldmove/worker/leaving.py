"""How long a worker that was told to end waits for its sessions to be moved away."""

import asyncio
from collections.abc import Callable

LOOK_S = 0.2
LED_S = 2.0
"""A server that conducts is heard at least so often: it beats."""


async def getting_away(
    num_held: Callable[[], int], num_heard: Callable[[], int], num_led: Callable[[], int], within_s: float
) -> None:
    """Return when for so long no copy has gone from here, nor a server was at it, though one was there to move them.

    ``num_heard``: how many words have come from a server, and ``num_led`` of them that it is at it: how long that may
    take is for it to say. How long none may be there is the link's business.
    """
    clock = asyncio.get_running_loop().time
    held, heard, led, left_s, heard_at = num_held(), num_heard(), num_led(), within_s, clock()
    while left_s > 1e-3:
        looked_at = clock()
        await asyncio.sleep(min(LOOK_S, left_s))
        if (said := num_heard()) != heard:
            heard, heard_at = said, clock()
        if clock() - heard_at < LED_S:
            left_s -= clock() - looked_at
        if (now := num_held()) < held or num_led() != led:
            left_s = within_s
        held, led = now, num_led()
