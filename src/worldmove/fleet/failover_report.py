"""What became of one failover: a copy that was not played goes on with a session whose owner is gone."""

from dataclasses import dataclass
from enum import Enum


class FailoverOutcome(Enum):
    """How a failover stands. DIVERGED: it replayed other frames than were shown, and was given up.

    ENDED: its epoch was over before a block of it was shown.
    """

    REPLAYS = "replays"
    RESUMED = "resumed"
    DIVERGED = "diverged"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverReport:
    """One failover. ``took_s``: from when its owner was known to be gone to the first block after it."""

    session: str
    source: str
    """The worker that is gone, or does not answer."""
    destination: str
    epoch: int
    boundary: int
    """The block that the copy stood before."""
    next_block: int
    """The first that it shows."""
    started_at: float
    """Seconds since 1970."""
    began: float
    """The same by the event loop's clock."""
    outcome: FailoverOutcome
    took_s: float | None = None
    num_compared: int = 0
    """How many of the replayed blocks were compared with what was shown: all, but for those of an earlier server."""
    differs_at: int | None = None
    """The first replayed block that differs."""
    why: str = ""
    """Of one that is ENDED: what has ended its epoch, as a clause. Else empty."""

    @property
    def num_replayed(self) -> int:
        """How many blocks were computed anew."""
        return max(0, self.next_block - self.boundary)
