"""What became of one move, in one value: what was asked, how it ended, where its time went, and in one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from worldmove.move.messages import Ended
from worldmove.units import seconds_text


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

    def sentence(self) -> str:
        """Say it to whoever plays. A failure begins with what did not happen."""
        match self.outcome:
            case Outcome.COMMITTED:
                return _moved(self)
            case Outcome.REFUSED:
                return f"Not moved, nothing changed. {_clause(self.detail)} Your world goes on at {self.source}."
            case Outcome.ABORTED:
                return _not_moved(self)
            case Outcome.IN_DOUBT:
                return "Holding. We are making sure that only one copy goes on. Usually under 2 s."
            case Outcome.LOST:
                return "The computer running your world stopped. This world could not be recovered."


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


def _moved(report: MoveReport) -> str:
    pause = "" if report.pause_s is None else f" The pause was {seconds_text(report.pause_s)}."
    late = ""
    if report.gap_s is not None:
        late = f" One block came {seconds_text(report.gap_s)} late." if report.gap_s > 0 else " No block came late."
    checked = f" All {report.num_leaves} parts are identical (checked)."
    return f"Moved. Your world now runs on {report.destination}.{late}{pause}{checked}"


def _not_moved(report: MoveReport) -> str:
    why = _clause(report.detail)
    if report.reason == "mismatch":
        tries = f" ({report.tries} tries)" if report.tries > 1 else ""
        why = f"A part arrived damaged{tries}. We threw the copy away."
    return f"Not moved, nothing changed. {why} Your world goes on at {report.source}."


def _clause(detail: str) -> str:
    """Make a sentence of a detail."""
    text = detail.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else "It was given up."
