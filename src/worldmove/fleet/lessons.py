"""What the last moves have measured for the next one: rates, and the parts of a pause that do not grow. Pure.

Only what was measured between the same two workers, in the same direction and not long ago counts. A rate is a median,
so one slow move changes nothing. The parts that do not grow are what is left of each pause when the parts that do are
taken away as they are reckoned: so what a reckoning forgets is learned, and not forgotten again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.measured import Fixed
from worldmove.move.strategy import Strategy
from worldmove.transport.link_speed import limit_of

NUM_LAST = 8
"""How many of the last moves count."""
AGE_S = 600.0
"""What was measured longer ago is of another time; and a path that was refused would never be measured again."""
RATE_FROM_BYTES = 1 << 20
"""A smaller move's time is that of its messages."""

PRE_COPY, REPLAY = Strategy.PRE_COPY.value, Strategy.REPLAY.value

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What is known of a state's rows: how fast they are digested and moved, what a block changes of them and makes."""

    row_rate: float | None
    move_rate: float | None = None
    dirty_bytes: int | None
    new_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """From whom, to whom, over what: by name."""

    source: str
    destination: str
    transport: str


def path_rate(route: Route, reports: Sequence[MoveReport], rates: Mapping[str, float], now: float) -> float | None:
    """Return what a path carries between two workers, bytes per second; None where nothing measured it.

    ``rates``: what the destination measured before its hello. A path that damages or breaks what it carries is as fast
    as the one that it wraps, and one with a limit no faster than that.
    """
    told = [report for report in _recent(route, reports, now) if report.transport == route.transport]
    moved = [rate for report in told if (rate := _carried(report)) is not None]
    if moved:
        return median_low(moved[-NUM_LAST:])
    limit = limit_of(route.transport)
    if limit is not None:
        inner = rates.get(f"{limit[1]}_bytes_per_s")
        return None if inner is None else min(inner, limit[0])
    wrapped = route.transport.rpartition("-")[2]
    return rates.get(f"{route.transport}_bytes_per_s") or rates.get(f"{wrapped}_bytes_per_s")


def hash_rates(
    route: Route, reports: Sequence[MoveReport], now: float, *, source: float | None, destination: float | None
) -> tuple[float | None, float | None]:
    """Return how fast the two ends digest a state while they move it; as their warm-ups say where no move does."""
    told = _recent(route, reports, now)
    here = [rate for report in told if (rate := _rate(report, "source", "second_digest")) is not None]
    there = [rate for report in told if (rate := _rate(report, "destination", "verify")) is not None]
    return (
        median_low(here[-NUM_LAST:]) if here else source,
        median_low(there[-NUM_LAST:]) if there else destination,
    )


def rows_learned(route: Route, reports: Sequence[MoveReport], now: float, known: Rows) -> Rows:
    """Return what is known of rows, with what the last moves between these two have measured of it.

    What a streaming move pulls at its boundary says nothing of what a block makes: most of it had come before.
    """
    told = _recent(route, reports, now)
    digested = [rate for report in told if (rate := _rate(report, "source", "rows")) is not None]
    moved = [rate for report in told if (rate := _moved(report)) is not None]
    whole = [report for report in told if report.strategy == PRE_COPY and report.moved_bytes][-NUM_LAST:]
    new = median_low([report.pulled_bytes for report in whole]) if whole else known.new_bytes
    dirty = median_low([report.pulled_bytes + report.moved_bytes for report in whole]) if whole else known.dirty_bytes
    return Rows(
        row_rate=median_low(digested[-NUM_LAST:]) if digested else known.row_rate,
        move_rate=median_low(moved[-NUM_LAST:]) if moved else known.move_rate,
        new_bytes=new,
        dirty_bytes=dirty,
    )


def fixed(
    route: Route,
    strategy: Strategy,
    reports: Sequence[MoveReport],
    now: float,
    *,
    hashes: tuple[float, float],
    start: Fixed | None = None,
) -> Fixed:
    """Return the parts that do not grow: of moves by this strategy between these two, else between any two; of moves by
    other strategies, else; and ``start`` where there was none of any.

    ``hashes``: the rates at the source and the destination that the next move is reckoned with.
    """
    told = [report for report in reports if _counts(report, now)]
    alike = [report for report in told if report.strategy == strategy.value]
    here = [report for report in alike if (report.source, report.destination) == (route.source, route.destination)]
    # A replay installs nothing in its pause, so it does not say how long that takes.
    others = [report for report in told if report.strategy != REPLAY]
    for chosen, whose in ((here, ""), (alike, ""), (others, " by other strategies")):
        parts = [found for report in chosen[-NUM_LAST:] if (found := _parts(report, hashes)) is not None]
        if parts:
            return _medians(parts, f"median of {len(parts)} move{'' if len(parts) == 1 else 's'}{whose}")
    return start or Fixed()


def _medians(parts: Sequence[Fixed], of: str) -> Fixed:
    meets = [part.meet_s for part in parts if part.meet_s is not None]
    return Fixed(
        freeze_s=median_low([part.freeze_s for part in parts]),
        install_s=median_low([part.install_s for part in parts]),
        commit_s=median_low([part.commit_s for part in parts]),
        meet_s=median_low(meets) if meets else None,
        num_moves=len(parts),
        of=of,
    )


def _parts(report: MoveReport, hashes: tuple[float, float]) -> Fixed | None:
    """Cut one pause into what does not grow; None where its phases do not tell."""
    freeze, verify = _span(report, "freeze"), _span(report, "verify")
    landed, halted = _span(report, "land"), _span(report, "halt")
    if report.pause_s is None or freeze is None or verify is None:
        return None
    passes = report.num_bytes / hashes[0], report.num_bytes / hashes[1]
    if halted is not None:
        return _parts_of_replay(report.pause_s, freeze, halted, passes)
    if landed is None:
        return None
    # What is reckoned by itself before the first byte: the rows' digests, and the rows that are moved.
    aside_s = sum(span[1] - span[0] for name in ("rows", "moves") if (span := _span(report, name)) is not None)
    freeze_s, install_s = max(0.0, landed[0] - freeze[0] - aside_s), max(0.0, verify[0] - landed[1])
    grown_s = max(landed[1] - landed[0], passes[0]) + max(passes[0], install_s + passes[1])
    commit_s = max(0.0, report.pause_s - freeze_s - aside_s - grown_s)
    return Fixed(freeze_s=freeze_s, install_s=install_s, commit_s=commit_s)


def _parts_of_replay(pause_s: float, freeze: Span, halted: Span, passes: tuple[float, float]) -> Fixed:
    """Cut the pause of a replay, whose follower may stand still before its source has frozen."""
    freeze_s, meet_s = freeze[1] - freeze[0], max(0.0, halted[1] - freeze[0])
    grown_s = max(freeze_s + 2 * passes[0], meet_s + passes[1])
    return Fixed(freeze_s=freeze_s, install_s=0.0, commit_s=max(0.0, pause_s - grown_s), meet_s=meet_s)


def _recent(route: Route, reports: Sequence[MoveReport], now: float) -> list[MoveReport]:
    ends = route.source, route.destination
    return [report for report in reports if (report.source, report.destination) == ends and _counts(report, now)]


def _counts(report: MoveReport, now: float) -> bool:
    return report.outcome is Outcome.COMMITTED and now - report.started_at <= AGE_S


def _carried(report: MoveReport) -> float | None:
    """Return how fast a path carried a state, or what was left of one; None where that was too little to tell."""
    land, fetch = _span(report, "land"), _span(report, "fetch")
    span = land or fetch
    num_bytes = report.num_bytes if land is None else report.pulled_bytes
    if span is None or num_bytes < RATE_FROM_BYTES or span[1] <= span[0]:
        return None
    return num_bytes / (span[1] - span[0])


def _moved(report: MoveReport) -> float | None:
    """Return how fast rows were moved at the destination; None where they were too few to tell."""
    span = _span(report, "moves")
    if span is None or report.moved_bytes < RATE_FROM_BYTES or span[1] <= span[0]:
        return None
    return report.moved_bytes / (span[1] - span[0])


def _rate(report: MoveReport, side: str, name: str) -> float | None:
    """Return how fast a phase went over the whole state, if the state is large enough to tell."""
    spans = [phase for phase in report.phases if (phase.side, phase.name) == (side, name)]
    took_s = sum(phase.end_s - phase.start_s for phase in spans)
    return report.num_bytes / took_s if took_s > 0 and report.num_bytes >= RATE_FROM_BYTES else None


def _span(report: MoveReport, name: str) -> Span | None:
    return next(((phase.start_s, phase.end_s) for phase in report.phases if phase.name == name), None)
