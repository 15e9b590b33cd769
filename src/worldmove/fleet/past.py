"""What one past move says: whether it counts for the next one, and the rates that its phases show. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.account import account_of

NUM_LAST = 8
"""How many of the last moves count."""
AGE_S = 600.0
"""What was measured longer ago is of another time; and a path that was refused would never be measured again.

Nor is what is said to be of a later one by so much: a clock was set back since, and it would count for as long.
"""
RATE_FROM_BYTES = 1 << 20
"""A smaller move's time is that of its messages."""
FETCH_FROM_S = 0.2
"""What is fetched while a session is played comes in a dozen chunks, each with turns of threads: in less time than
this, it says what those take, and not what the path carries."""
NO_TIME_S = 1e-7
"""What nobody waited for took no time: a rate beyond any measured one."""

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """From whom, to whom, over what: by name."""

    source: str
    destination: str
    transport: str


def between(route: Route, report: MoveReport) -> bool:
    """Whether it was made between the same two workers, in the same direction."""
    return (report.source, report.destination) == (route.source, route.destination)


def rested(report: MoveReport) -> bool:
    """Whether its session stood still before its freeze, and some of it came over then."""
    return any(phase.name == "rest" for phase in report.phases)


def recent(route: Route, reports: Sequence[MoveReport], now: float) -> list[MoveReport]:
    """Return those between the same two workers that count."""
    return [report for report in reports if between(route, report) and counts(report, now)]


def counts(report: MoveReport, now: float) -> bool:
    """Whether it came to its end, and not long ago."""
    return report.outcome is Outcome.COMMITTED and abs(now - report.started_at) <= AGE_S


def carried(report: MoveReport) -> tuple[int, float] | None:
    """Return how much of a state a path has carried, and how fast; None where that was too little to tell."""
    land, fetch = _span(report, "land"), _span(report, "fetch")
    span = land or fetch
    num_bytes = report.num_bytes if land is None else report.pulled_bytes
    if span is None or num_bytes < RATE_FROM_BYTES or span[1] <= span[0]:
        return None
    if land is None and span[1] - span[0] < FETCH_FROM_S:
        return None
    return num_bytes, num_bytes / (span[1] - span[0])


def digested(report: MoveReport) -> float | None:
    """Return how fast rows were digested, as far as the pause has waited for it."""
    account = account_of(report)
    if account is None or not account.has_rows or report.num_bytes < RATE_FROM_BYTES:
        return None
    return report.num_bytes / max(NO_TIME_S, account.rowed - account.frozen)


def moved(report: MoveReport) -> float | None:
    """Return how fast rows were moved at the destination; None where they were too few to tell."""
    span = _span(report, "moves")
    if span is None or report.moved_bytes < RATE_FROM_BYTES or span[1] <= span[0]:
        return None
    return report.moved_bytes / (span[1] - span[0])


def rates_of(reports: Sequence[MoveReport], side: str, name: str) -> list[float]:
    """Return how fast a phase of the last moves went over the whole state, of those that are large enough to tell."""
    return [rate for report in reports if (rate := _rate(report, side, name)) is not None][-NUM_LAST:]


def _rate(report: MoveReport, side: str, name: str) -> float | None:
    """Return how fast a phase went over the whole state, if the state is large enough to tell."""
    spans = [phase for phase in report.phases if (phase.side, phase.name) == (side, name)]
    took_s = fsum(phase.end_s - phase.start_s for phase in spans)
    return report.num_bytes / took_s if took_s > 0 and report.num_bytes >= RATE_FROM_BYTES else None


def _span(report: MoveReport, name: str) -> Span | None:
    return next(((phase.start_s, phase.end_s) for phase in report.phases if phase.name == name), None)
