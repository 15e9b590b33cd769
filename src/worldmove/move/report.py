"""What became of one move, in one value: what was asked, how it ended, and where its time went."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from worldmove.move.messages import Ended


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
class Expectation:
    """What admission expected of a move. Seconds."""

    strategy: str
    pause_s: float
    before_s: float
    """Of what comes before the freeze."""
    terms: tuple[tuple[str, float], ...]
    """Of the pause, by name."""


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
    runs_at: str | None = None
    """The session's owner by the ledger's row when this was told. None: nobody that lives."""
    tries: int
    transport: str
    started_at: float
    """Wall clock, seconds since 1970."""
    took_s: float
    """From the request to its end."""
    strategy: str = "boundary copy"
    epoch_before: int | None = None
    environment_digest: str = ""
    """Of the fields that both ends have alike; empty where they were not compared, or differ."""
    pause_s: float | None = None
    """From the freeze at the source to the permission to compute at the destination."""
    expected: Expectation | None = None
    """None where admission was not asked, or did not know."""
    gap_s: float | None = None
    """The largest lateness of a block at the gateway in the move; 0 is on time. None where none was due."""
    phases: tuple[PhaseTime, ...] = ()
    num_bytes: int = 0
    num_leaves: int = 0
    num_groups: int = 0
    num_checked: int = 0
    """Leaves whose bytes the destination has compared, by its own word; 0 where it has not said so."""
    in_place_bytes: int = 0
    """Of the state: what lay at the destination already when the session was frozen; what lay there elsewhere and was
    moved; what was pulled then."""
    moved_bytes: int = 0
    pulled_bytes: int = 0
    followed_bytes: int = 0
    """Of the state: what the destination had computed beside its slot, and the frozen session held the same."""
    plain: str = ""
    """Why all of it was pulled, though the strategy knows better."""
    source_digest: str = ""
    """State digest of the frozen state."""
    destination_digest: str = ""
    """State digest of the installed state, taken after landing."""


def merge_phases(source: Ended | None, destination: Ended | None) -> tuple[PhaseTime, ...]:
    """Put the phases of both ends on one axis, in the order of their beginnings. Both clocks are the host's one."""
    ends = [end for end in (source, destination) if end is not None]
    if not ends:
        return ()
    zero = ends[0].clock
    phases = [
        PhaseTime(side=end.side, name=name, start_s=end.clock - zero + start, end_s=end.clock - zero + stop)
        for end in ends
        for name, start, stop in end.phases
    ]
    return tuple(sorted(phases, key=lambda phase: (phase.start_s, phase.end_s, phase.side, phase.name)))


def pause_s(phases: Sequence[PhaseTime]) -> float | None:
    """Return the time from the freeze to the permission to compute, in merged phases; None without either."""
    frozen = [phase.start_s for phase in phases if (phase.side, phase.name) == ("source", "freeze")]
    allowed = [phase.end_s for phase in phases if (phase.side, phase.name) == ("destination", "promote")]
    return max(allowed) - min(frozen) if frozen and allowed else None
