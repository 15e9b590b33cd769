"""When a session is best met at a block boundary: right after a step, with nearly a whole period ahead."""

import asyncio

from worldmove.worker.session import SessionCopy

FRESH = 0.1
"""A boundary is fresh for this share of a block's period."""
RESTING = 1.25
"""Periods without a step after which a session counts as resting, and is met where it stands."""


async def next_boundary(copy: SessionCopy, period_s: float) -> None:
    """Wait for the end of a step, so that what follows begins as far as can be from the next block's due time.

    A session that rests has no due time: it is met at once.
    """
    since_s = asyncio.get_running_loop().time() - copy.ended_at
    if since_s < FRESH * period_s or (since_s > RESTING * period_s and not copy.step.is_there):
        return
    await boundary_after(copy, period_s)


async def boundary_after(copy: SessionCopy, period_s: float) -> None:
    """Wait for the end of a step, however fresh the boundary is; not for ever where the session rests."""
    try:
        async with asyncio.timeout(RESTING * period_s):
            await copy.step.ended()
    except TimeoutError:
        return


def num_ahead(copy: SessionCopy, period_s: float) -> int:
    """Return how many blocks ahead a copy can be met, so that whoever meets it there has nearly a period's notice.

    The last of them is one whose list nobody has yet; none where the session rests.
    """
    if copy.step.is_there or copy.can_step:
        return 2
    since_s = asyncio.get_running_loop().time() - copy.ended_at
    return 0 if since_s > RESTING * period_s else 1
