"""Pause and gap of verified moves under play, beside a copy of the same bytes and beside a world never moved."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from bench.copier import Copier, Copies, copier
from bench.duel import Duel, DuelConfig, duel, move_row
from bench.numbers import spread
from bench.phases import steps
from bench.record import Recorder, parser, quiet, require_worker_path
from worldmove.state.capture import capture
from worldmove.worker.engines import build_engine

GOAL_COPIES, GOAL_MS = 3.0, 10.0


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("pause", options)
    found, copies = asyncio.run(measure(options))
    recorder.write(summary_of(found, copies), samples_of(found, copies))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("pause", __doc__)
    options.add_argument("--moves", type=int, default=200)
    options.add_argument("--segment", type=int, default=20, help="moves before the control has its turn")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    return options.parse_args(arguments)


async def measure(options: argparse.Namespace) -> tuple[Duel, list[Copies]]:
    """Run the two worlds, and one copy after each move."""
    config = DuelConfig(
        engine=options.engine,
        threads=options.threads,
        workers=options.workers,
        moves=options.moves,
        segment=options.segment,
        seed=options.seed,
        rest_moves=False,
    )
    copies: list[Copies] = []
    async with copier(state_bytes(options.engine, options.threads)) as peer:
        return await duel(config, lambda: _copy(peer, copies)), copies


async def _copy(peer: Copier, copies: list[Copies]) -> None:
    copies.append(await peer.copy())


def state_bytes(engine_name: str, threads: int) -> int:
    """Return how many bytes a session of an engine has."""
    engine = build_engine(engine_name, threads)
    return capture(engine.state(engine.open(0)), engine.state_types).num_bytes


def summary_of(found: Duel, copies: Sequence[Copies]) -> dict[str, Any]:
    """Say what came out, and whether it is good."""
    rows = [move_row(report) for report in found.moves.committed]
    pauses = [row["pause_ms"] for row in rows]
    first, again = [copy.first_ms for copy in copies], [copy.again_ms for copy in copies]
    pause, copy = spread(pauses), spread(first)
    goal_ms = GOAL_COPIES * min(copy["p50"], spread(again)["p50"]) + GOAL_MS
    return {
        "moves": len(rows),
        "not_moved": [[report.outcome.value, report.reason] for report in found.moves.others],
        "num_bytes": rows[0]["num_bytes"],
        "pause_ms": pause,
        "copy_ms": copy,
        "copy_again_ms": spread(again),
        "pause_in_copies": round(pause["p50"] / min(copy["p50"], spread(again)["p50"]), 2),
        "goal_ms": round(goal_ms, 3),
        "pause_goal_met": pause["p50"] <= goal_ms,
        "steps_ms": _steps(rows),
        "phases_ms": _phases(rows),
        "digests_equal": sum(row["source_digest"] == row["destination_digest"] != "" for row in rows),
        **lateness(found),
    }


def lateness(found: Duel) -> dict[str, Any]:
    """Compare the two worlds' blocks: those late in one, and late though the control's was on time."""
    firsts = {report.epoch for report in found.moves.committed}
    late = {row["block"]: row["margin_ms"] for row in found.moved if _is_late(row)}
    late_control = {row["block"]: row["margin_ms"] for row in found.control if _is_late(row)}
    after_move = _first_blocks(found.moved, firsts)
    same_inputs = found.moved_log == found.control_log
    frames_equal = found.moved_seen["frames"] == found.control_seen["frames"] if same_inputs else None
    return {
        "blocks": len(found.moved),
        "blocks_control": len(found.control),
        "lists_differ": sum(_keys(a) != _keys(b) for a, b in zip(found.moved_log, found.control_log, strict=False)),
        "margin_ms": spread([row["margin_ms"] for row in found.moved if row["margin_ms"] is not None]),
        "margin_control_ms": spread([row["margin_ms"] for row in found.control if row["margin_ms"] is not None]),
        "margin_after_move_ms": spread([r["margin_ms"] for r in after_move if r["margin_ms"] is not None]),
        "blocks_late": len(late),
        "blocks_late_control": len(late_control),
        "late_where_control_was_not": sorted(set(late) - set(late_control)),
        "compute_ms": spread([row["compute_ms"] for row in found.moved if row["compute_ms"] is not None]),
        "compute_control_ms": spread([row["compute_ms"] for row in found.control if row["compute_ms"] is not None]),
        "beside_engine_control_ms": spread(_beside_engine(found)),
        "frames_damaged": found.moved_seen["damaged"] + found.control_seen["damaged"],
        "frames_missing": found.moved_seen["missing"] + found.control_seen["missing"],
        "frames_changed": found.moved_seen["changed"] + found.control_seen["changed"],
        "frames_equal_to_control": frames_equal,
        "checks": found.moved_seen["checks"],
        "checks_unequal": found.moved_seen["checks_unequal"],
    }


def _is_late(row: dict[str, Any]) -> bool:
    return row["margin_ms"] is not None and row["margin_ms"] < 0


def _beside_engine(found: Duel) -> list[float]:
    """Return what each of the control's blocks took from the closing of its list to the gateway, less the engine."""
    on_time = [row for row in found.control if row["margin_ms"] is not None and not _is_late(row)]
    return [found.period_ms - row["margin_ms"] - row["compute_ms"] for row in on_time]


def _keys(changes: list[list[Any]]) -> list[list[Any]]:
    """Return a list's changes without their numbers."""
    return [change[1:] for change in changes]


def _first_blocks(rows: Sequence[dict[str, Any]], epochs: set[int]) -> list[dict[str, Any]]:
    first: dict[int, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row["epoch"], row)
    return [row for epoch, row in first.items() if epoch in epochs]


def _steps(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    cut = [found for row in rows if (found := steps(row["phases"])) is not None]
    return {name: spread([found[name] for found in cut]) for name in (cut[0] if cut else {})}


def _phases(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return each phase's start and length, p50, in the order of their starts."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        for name, (start, end) in row["phases"].items():
            found.setdefault(name, []).append((start, end - start))
    table = {
        name: {
            "start_p50": spread([start for start, _ in spans])["p50"],
            "took_p50": spread([took for _, took in spans])["p50"],
            "took_p90": spread([took for _, took in spans])["p90"],
        }
        for name, spans in found.items()
    }
    return dict(sorted(table.items(), key=lambda item: item[1]["start_p50"]))


def samples_of(found: Duel, copies: Sequence[Copies]) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "moves": [move_row(report) for report in found.moves.committed],
        "not_moved": [move_row(report) for report in found.moves.others],
        "copies_ms": [[copy.first_ms, copy.again_ms] for copy in copies],
        "moved_blocks": found.moved,
        "control_blocks": found.control,
        "inputs": found.moved_log,
        "inputs_control": found.control_log,
    }


if __name__ == "__main__":
    main()
