"""When a block's list is closed, when the block is due, and when the world rests. Pure.

Rules of this file:

1. Block b is due at ``anchor + (b - b0) * period``. Its list is closed ``lead`` (one period) before that.
2. At most ``max_outstanding`` blocks are closed and not yet shown; the next closing waits for a block.
3. A closing that comes after its own block is due begins a new anchor, one lead from now. So does waking.
4. The world rests when nobody watches, or when no key was down for ``rest_after_s`` and nothing keeps it
   going. A world that was never seen plays its first ``rest_after_s``, so that there is a picture.
5. It does not rest while blocks are owed: after a move the new owner plays the blocks that the retired copy is
   to be compared with, and only a block past its boundary lets that copy go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

NOBODY_WATCHES = "nobody watches"
NO_KEY = "no key was down for a while"


@dataclass(frozen=True, slots=True, kw_only=True)
class TempoConfig:
    """Seconds. ``lead_s``: from the closing of a block's list to its due time."""

    period_s: float
    lead_s: float
    rest_after_s: float = 4.0
    max_outstanding: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a session looks like now. ``block``: the next to close; ``shown``: the next to be shown."""

    now: float
    block: int
    shown: int
    active: bool
    kept: bool
    watched: bool
    owed: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Close the list of the next block now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again at ``until``, or, where that is None, when the situation changes."""

    until: float | None


@dataclass(frozen=True, slots=True)
class Rest:
    """Close nothing until the situation changes."""

    why: str


Decision = Close | Wait | Rest


class Tempo:
    """One session's anchor and rest."""

    def __init__(self, config: TempoConfig) -> None:
        self._config = config
        self._anchor: tuple[int, float] | None = None
        self._active_at: float | None = None
        self._due: dict[int, float] = {}

    def due(self, block: int) -> float | None:
        """When a block is to be at the gateway; None for one whose list is not closed, or that was shown long ago."""
        return self._due.get(block)

    def will_be_due(self, block: int) -> float | None:
        """When a block will be due if the world goes on as it does; None while it rests."""
        if block in self._due or self._anchor is None:
            return self._due.get(block)
        first, at = self._anchor
        return at + (block - first) * self._config.period_s

    def decide(self, situation: Situation) -> Decision:
        """Say what to do now. A block is due from the moment of its Close on, and its due time never changes."""
        now, block = situation.now, situation.block
        if situation.active or (self._active_at is None and situation.watched):
            self._active_at = now
        if why := self._reason_to_rest(situation):
            return self._rest(situation, why)
        if block - situation.shown >= self._config.max_outstanding:
            return Wait(None)
        due = self.will_be_due(block)
        if due is None or now >= due:
            due = now + self._config.lead_s
            self._anchor = (block, due)
        elif now < due - self._config.lead_s:
            return Wait(due - self._config.lead_s)
        self._due = {closed: at for closed, at in self._due.items() if closed >= situation.shown - 1} | {block: due}
        return Close()

    def _rest(self, situation: Situation, why: str) -> Decision:
        """A world does not rest before the blocks on their way are shown."""
        if situation.block > situation.shown:
            return Wait(None)
        self._anchor = None
        return Rest(why)

    def _reason_to_rest(self, situation: Situation) -> str | None:
        if situation.owed:
            return None
        if not situation.watched:
            return NOBODY_WATCHES
        if situation.active or situation.kept or self._active_at is None:
            return None
        idle = situation.now - self._active_at >= self._config.rest_after_s
        return NO_KEY if idle else None


def horizon_s(period_s: float, compute_s: Sequence[float]) -> float | None:
    """Seconds from a block's arrival to the next one's due time less its compute time; None without a block time.

    A list is closed one period before its block is due: two periods lie between the closing of this block's list
    and the due time of the next one, and two blocks are computed in them. The slowest tenth does not count.
    Without limit for a world that is too slow for its period: each of its blocks comes late and begins a new
    anchor (rule 3), so no move can make one late that would have been on time.
    """
    if not compute_s:
        return None
    slow_s = sorted(compute_s)[-1 - len(compute_s) // 10]
    return 2 * (period_s - slow_s) if slow_s < period_s else inf
