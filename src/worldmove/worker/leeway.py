"""Whether one more block fits in between those of the worlds that are played, and what that rule lets go by. Pure.

A list comes a period before its block is due, so worlds whose blocks take a part of that can wait for one more to end.
How much of the time that they leave comes to be used depends on when their lists come:

    lists a third of a period apart   |1111|2222|ffff|ffff|1111|2222|ffff|1111 ...     nothing goes by unused
    lists that come at once           |1111|2222|ffff|..  |1111|2222|ffff|..  |11      one block a period, and no more

Where the next block would make somebody late, the engine stands still until the next list, and a follower that could
catch up by the sum of all blocks never does.
"""

from collections.abc import Sequence

MARGIN = 1.1
"""How much longer than the longest of late a block may take that is to be over in time."""
STARTS = 4
"""Courses that are played through at most: of many worlds, each is about as any other."""
SETTLING, PERIODS = 4, 30
"""Periods that are played through until it is looked at what goes by, and for how many."""


def makes_nobody_late(now: float, takes_s: float, lists: Sequence[float], period_s: float) -> bool:
    """Whether, after a block begun now, everybody's next one is over within a period of its list.

    ``lists``: when each world's newest list came. All are of one engine and take as long.
    """
    over_at = now + takes_s
    for list_at in sorted(at + period_s for at in lists):
        over_at = max(over_at, list_at) + takes_s
        if over_at > list_at + period_s:
            return False
    return True


def unused_s(ages: Sequence[float], *, period_s: float, block_s: float, takes_s: float) -> float:
    """Return how much of a period goes by at most with nothing computed, though a follower has blocks to step.

    ``ages``: how long ago each world's newest list came; ``takes_s``: what a block is taken to take by the rule.
    """
    if not ages or min(period_s, block_s) <= 0 or (len(ages) + 1) * takes_s <= period_s:
        return 0.0  # all of them fit into a period, and one more
    lists = [-(age % period_s) for age in ages]
    starts = [[(at - first) % period_s for at in lists] for first in lists[:STARTS]]
    return max(_unused_from(upcoming, period_s, block_s, takes_s) for upcoming in starts)


def _unused_from(upcoming: list[float], period_s: float, block_s: float, takes_s: float) -> float:
    """Return it for an engine that stands still until a list that comes now. ``upcoming``: when each next one comes.

    What it does after it stood still is always one of these courses. Another may go well for any number of periods, and
    ends in one of them the first time that a block does not fit in.
    """
    newest = [at - period_s for at in upcoming]
    begins, ends = SETTLING * period_s, (SETTLING + PERIODS) * period_s
    now, unused = 0.0, 0.0
    while now < ends:
        first = min(range(len(upcoming)), key=upcoming.__getitem__)
        list_at = upcoming[first]
        if list_at <= now:
            newest[first], upcoming[first] = list_at, list_at + period_s
            now += block_s
        elif makes_nobody_late(now, takes_s, newest, period_s):
            now += block_s
        else:
            unused += max(0.0, list_at - max(now, begins))
            now = list_at
    return unused / PERIODS
