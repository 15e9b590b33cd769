"""What came of a run of moves under play, in figures. Pure. Times in ms."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.course import Course, Made
from bench.numbers import spread
from bench.prediction import errors_of
from worldmove.cli.benches.live_blocks import late, of_segments, parted
from worldmove.cli.benches.tap import Arrival

PAUSE_MS, REPLAY_MS = 20.0, 10.0
"""The goals: of every pause, and of one by replay."""


def move_row(made: Made) -> dict[str, Any]:
    """Return a move as one row of samples; its phases in ms from the freeze."""
    report = made.report
    expected = report["expected"] or {}
    told = (
        *("outcome", "reason", "strategy", "transport", "proof", "num_bytes"),
        *("in_place_bytes", "moved_bytes", "pulled_bytes", "followed_bytes", "plain"),
    )
    return {
        "asked": made.ask.strategy or "any",
        "link": made.ask.link,
        "to": report["to"],
        **{name: report[name] for name in told},
        "detail": "" if report["outcome"] == "committed" else report["detail"],
        "expected_ms": expected.get("pause_ms"),
        "before_expected_ms": expected.get("before_ms"),
        "terms_ms": expected.get("terms", {}),
        "pause_ms": report["pause_ms"],
        "gap_ms": report["gap_ms"],
        "took_ms": report["took_ms"],
        "blocks": list(made.blocks),
        "digests_equal": is_equal(report),
        "phases": {f"{p['side']}.{p['name']}": [p["start_ms"], p["end_ms"]] for p in report["phases"]},
        **made.note,
    }


def is_equal(report: Mapping[str, Any]) -> bool:
    """Whether the destination has compared every part; and both ends' state digests are one, where both took it."""
    whole = report["proof"].startswith("checked ")
    return whole and report["destination_digest"] in ("", report["source_digest"])


def summary_of(found: Course) -> dict[str, Any]:
    """Say what came out."""
    rows = [move_row(made) for made in found.made]
    done = [row for row in rows if row["outcome"] == "committed"]
    usual = [row for row in rows if "edge" not in row]
    pauses = [row["pause_ms"] for row in done]
    lates = {name: _late(found, with_moves=moved) for name, moved in (("with_moves", True), ("control", False))}
    return {
        "moves": len(done),
        "strategies": dict(Counter(row["strategy"] for row in done)),
        "not_moved": dict(Counter(f"{row['outcome']}: {row['reason']}" for row in usual if row not in done)),
        "left_out": dict(Counter(way.name for way in found.left_out)),
        "num_bytes": done[0]["num_bytes"] if done else None,
        "ways": {name: _way(same) for name, same in _by_way(usual).items()},
        "pause_ms": spread(pauses),
        "pauses_within_20_ms": sum(pause <= PAUSE_MS for pause in pauses),
        "errors": errors_of(done),
        "errors_by_strategy": {name: errors_of(same) for name, same in _by(done, "strategy").items()},
        "late_after_admission": sum((row["gap_ms"] or 0.0) > 0 for row in done if row["expected_ms"] is not None),
        "digests_equal": sum(row["digests_equal"] for row in done),
        "blocks": lates,
        "residents": residents_of(found),
        "edges": found.edges,
        "frames": _frames(found),
    }


def residents_of(found: Course) -> dict[str, Any]:
    """Say how the residents fared: while a move to their worker was under way, between moves, and without any."""
    there = [made.span for made in found.made if made.report["to"] == _home(found)]
    told = parted(found.arrivals[1:], found.segments, there)
    kinds = {"during_a_move_to_it": told.during, "beside_moves": told.between, "control": told.control}
    return {"n": len(found.arrivals) - 1, **{name: blocks_of(blocks) for name, blocks in kinds.items()}}


def _home(found: Course) -> str | None:
    return found.arrivals[1][0].worker if len(found.arrivals) > 1 and found.arrivals[1] else None


def _late(found: Course, *, with_moves: bool) -> dict[str, Any]:
    return blocks_of(of_segments(found.arrivals[0], found.segments, with_moves=with_moves))


def blocks_of(blocks: Sequence[Arrival]) -> dict[str, Any]:
    """Return what blocks took, and how far from late they were."""
    margins = [1000 * arrival.margin_s for arrival in blocks if arrival.margin_s is not None]
    compute = spread([1000 * arrival.compute_s for arrival in blocks])
    return {"n": len(blocks), "late": len(late(blocks)), "margin_ms": spread(margins), "compute_ms": compute}


def _way(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    done = [row for row in rows if row["outcome"] == "committed"]
    return {
        "moves": len(done),
        "strategies": dict(Counter(row["strategy"] for row in done)),
        "pause_ms": spread([row["pause_ms"] for row in done]),
        "expected_ms": spread([row["expected_ms"] for row in done if row["expected_ms"] is not None]),
        "took_ms": spread([row["took_ms"] for row in done]),
        "late": sum((row["gap_ms"] or 0.0) > 0 for row in done),
        "goal_met": bool(done) and all(row["pause_ms"] <= goal_ms(row) for row in done),
    }


def goal_ms(row: Mapping[str, Any]) -> float:
    """Return what a pause may last."""
    return REPLAY_MS if row["strategy"] == "replay" else PAUSE_MS


def _by_way(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    named = [{**row, "way": f"{row['asked']}, {row['link'] or 'as it is'}"} for row in rows]
    return _by(named, "way")


def _by(rows: Sequence[dict[str, Any]], field: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[field], []).append(row)
    return found


def _frames(found: Course) -> dict[str, Any]:
    """Say what the players saw, and whether the moved world's frames are those that its workers took."""
    taken = [digest for arrival in found.arrivals[0] for digest in arrival.frames]
    seen = found.seen[0].digests
    equal = sum(number < len(taken) and taken[number] == digest for number, digest in seen.items())
    return {
        "seen": len(seen),
        "equal_to_the_workers": equal,
        "damaged": sum(each.damaged for each in found.seen),
        "missing": sum(each.missing for each in found.seen),
    }


def samples_of(found: Course) -> dict[str, Any]:
    """Return everything that was measured. Blocks: number, epoch, instant in s, margin, compute time."""
    return {
        "moves": [move_row(made) for made in found.made],
        "spans_s": [[round(at, 3) for at in made.span] for made in found.made],
        "segments": [
            {"with_moves": each.with_moves, "blocks": list(each.blocks), "span_s": [round(at, 3) for at in each.span]}
            for each in found.segments
        ],
        "rates": found.rates,
        "blocks": [[_row(arrival) for arrival in world] for world in found.arrivals],
    }


def _row(arrival: Arrival) -> list[float | int | None]:
    margin = None if arrival.margin_s is None else round(1000 * arrival.margin_s, 2)
    return [arrival.block, arrival.epoch, round(arrival.arrived, 3), margin, round(1000 * arrival.compute_s, 2)]
