"""What became of one move, in one value: what was asked, how it ended, where its time went."""

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a move ended. REFUSED: before a byte travelled. ABORTED: the source runs on."""

    COMMITTED = "committed"
    REFUSED = "refused"
    ABORTED = "aborted"
    IN_DOUBT = "in_doubt"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """One phase of one end. Seconds, on one axis for both ends: 0 is the source's freeze where there was one."""

    side: str
    """``source`` or ``destination``."""
    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """One move, of one or more tries. Digests are empty and counts 0 where a move did not come that far."""

    session: str
    attempt: str
    """The last try's id."""
    source: str
    destination: str
    outcome: Outcome
    reason: str
    """A word for programs: ``done``, ``environment``, ``no_slot``, ``too_slow``, ``mismatch``, ``cancelled``, ..."""
    detail: str
    """One sentence for people."""
    epoch: int
    """The session's epoch after the move."""
    tries: int
    transport: str
    started_at: float
    """Wall clock, seconds since 1970."""
    took_s: float
    """From the request to its end."""
    pause_s: float | None = None
    """From the freeze at the source to the permission to compute at the destination."""
    gap_s: float | None = None
    """How late the next block was at the gateway against its due time; 0 is on time. None until it came."""
    phases: tuple[PhaseTime, ...] = ()
    num_bytes: int = 0
    num_leaves: int = 0
    num_groups: int = 0
    source_digest: str = ""
    """State digest of the frozen state."""
    destination_digest: str = ""
    """State digest of the installed state, taken after landing."""
