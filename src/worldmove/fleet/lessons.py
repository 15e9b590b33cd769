"""What the last moves have measured for the next one. Pure.

Only what was measured between the same two workers and not long ago counts, and a median of it, so one slow move
changes nothing. What is called alike takes another time in another strategy, and in the other direction, so the nearest
moves count alone, where there are any: others do until then. What follows no rate is learned in ``fleet/stretches.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low

from worldmove.fleet.past import NUM_LAST, Route, between, carried, counts, digested, moved, rates_of, recent, rested
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.stretches import Pace, fixed
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy
from worldmove.transport.link_speed import limit_of

OF_LARGEST = 0.25
"""What carried a smaller share of the largest says nothing of the path: its time is that of its messages."""

PRE_COPY, REPLAY = Strategy.PRE_COPY.value, Strategy.REPLAY.value


def path_rate(route: Route, reports: Sequence[MoveReport], rates: Mapping[str, float], now: float) -> float | None:
    """Return what a path carries between two workers, bytes per second; None where nothing measured it.

    ``rates``: what the destination measured before its hello. A path that damages or breaks what it carries is as fast
    as the one that it wraps, and one with a limit no faster than that.
    """
    told = [report for report in recent(route, reports, now) if report.transport == route.transport]
    known = [found for report in told if (found := carried(report)) is not None]
    if known:
        enough = OF_LARGEST * max(num_bytes for num_bytes, _ in known)
        return median_low([rate for num_bytes, rate in known if num_bytes >= enough][-NUM_LAST:])
    limit = limit_of(route.transport)
    if limit is not None:
        inner = rates.get(f"{limit[1]}_bytes_per_s")
        return None if inner is None else min(inner, limit[0])
    wrapped = route.transport.rpartition("-")[2]
    return rates.get(f"{route.transport}_bytes_per_s") or rates.get(f"{wrapped}_bytes_per_s")


def learned(known: Measured, strategy: Strategy, route: Route, reports: Sequence[MoveReport], now: float) -> Measured:
    """Return what the warm-ups have measured, with what the last moves have measured since of one strategy."""
    seen = _seen(strategy, route, reports, now)
    found = _rows(_hashes(known, seen), seen, recent(route, reports, now))
    if not found.source_hash_rate or not found.destination_hash_rate:
        return found
    pace = Pace(source_hash=found.source_hash_rate, destination_hash=found.destination_hash_rate, path=found.path_rate)
    return replace(found, fixed=fixed(route, strategy, reports, now, pace=pace, start=found.fixed))


def _seen(
    strategy: Strategy, route: Route, reports: Sequence[MoveReport], now: float
) -> tuple[Sequence[MoveReport], ...]:
    """Return the moves that say how fast two workers do something in a move by this strategy: the nearest first.

    By itself in this direction and in either, by those that are like it, and by whichever.
    """
    back = Route(source=route.destination, destination=route.source, transport=route.transport)
    here, either = recent(route, reports, now), [each for each in reports if counts(each, now)]
    either = [each for each in either if between(route, each) or between(back, each)]
    own, alike = {strategy.value}, {each.value for each in strategy.alike}
    kinds = [[each for each in told if each.strategy in of] for of in (own, alike) for told in (here, either)]
    return (*kinds, here, either)


def _first(found: Iterable[Sequence[float]]) -> float | None:
    """Return the median of the first that there are any of."""
    return next((median_low(rates) for rates in found if rates), None)


def _hashes(known: Measured, seen: Sequence[Sequence[MoveReport]]) -> Measured:
    """Learn how fast the two ends digest a state while they move it.

    A follower's pass is begun beside its source's freeze, and so says nothing of the other strategies'.
    """
    *kinds, here_all, all_ = seen
    others = [[report for report in told if report.strategy != REPLAY] for told in (here_all, all_)]
    here = _first(rates_of(told, "source", "second_digest") for told in seen)
    there = _first(rates_of(told, "destination", "verify") for told in (*kinds, *others))
    return replace(
        known,
        source_hash_rate=here or known.source_hash_rate,
        destination_hash_rate=there or known.destination_hash_rate,
    )


def _rows(known: Measured, seen: Sequence[Sequence[MoveReport]], told: Sequence[MoveReport]) -> Measured:
    """Learn how fast rows are digested and moved, what a block changes of them and what it makes.

    What a streaming move pulls at its boundary says nothing of what a block makes, since most of it had come before;
    nor does a move before which the session stood still.
    """
    *kinds, _, _ = seen
    rows = _first(_some(digested, told) for told in kinds)
    shifts = _first(_some(moved, told) for told in seen)
    whole = [report for report in told if report.strategy == PRE_COPY and report.moved_bytes and not rested(report)]
    found = replace(
        known,
        row_rate=rows or known.row_rate,
        move_rate=shifts or known.move_rate,
    )
    if not whole:
        return found
    return replace(
        found,
        new_bytes=median_low([report.pulled_bytes for report in whole[-NUM_LAST:]]),
        dirty_bytes=median_low([report.pulled_bytes + report.moved_bytes for report in whole[-NUM_LAST:]]),
    )


def _some(rate_of: Callable[[MoveReport], float | None], told: Sequence[MoveReport]) -> list[float]:
    return [rate for report in told if (rate := rate_of(report)) is not None][-NUM_LAST:]
