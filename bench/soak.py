"""Many moves in a row under play, then everything compared: states, every frame, deadlines."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from bench.duel import Duel, DuelConfig, duel, move_row
from bench.numbers import spread
from bench.pause import lateness
from bench.record import Recorder, parser, quiet, require_worker_path
from bench.replay import Replayed, replayed
from worldmove.cli.benches.tap import Checked


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("soak", options)
    found, again = asyncio.run(measure(options))
    recorder.write(summary_of(found, again), samples_of(found, again))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("soak", __doc__)
    options.add_argument("--moves", type=int, default=500)
    options.add_argument("--segment", type=int, default=50, help="moves before a rest and the control's turn")
    options.add_argument("--workers", type=int, default=3)
    options.add_argument("--seed", type=int, default=2)
    return options.parse_args(arguments)


async def measure(options: argparse.Namespace) -> tuple[Duel, Replayed]:
    """Run the two worlds; then, with every worker ended, replay the moved world's log."""
    config = DuelConfig(
        engine=options.engine,
        threads=options.threads,
        workers=options.workers,
        moves=options.moves,
        segment=options.segment,
        seed=options.seed,
        rest_moves=True,
    )
    found = await duel(config, _nothing)
    again = await replayed(
        engine=options.engine,
        threads=options.threads,
        seed=options.seed,
        log=found.moved_log,
        boundaries={*boundaries_of(found).values(), *(check.block + 1 for check in found.checks)},
    )
    return found, again


async def _nothing() -> None:
    return


def boundaries_of(found: Duel) -> dict[int, int]:
    """Return, by epoch, the first block that came of it: the boundary at which its move froze the world."""
    first: dict[int, int] = {}
    for row in found.moved:
        first.setdefault(row["epoch"], row["block"])
    return first


def summary_of(found: Duel, again: Replayed) -> dict[str, Any]:
    """Say what came out, and whether it is good."""
    rows = [move_row(report) for report in found.moves.committed]
    equal = sum(row["source_digest"] == row["destination_digest"] != "" for row in rows)
    boundaries = boundaries_of(found)
    compared = [row for row in rows if row["epoch"] in boundaries]
    as_replayed = sum(again.states[boundaries[row["epoch"]]] == row["destination_digest"] for row in compared)
    checks_equal = sum(_as_replayed(check, again) for check in found.checks)
    seen = found.moved_seen["frames"]
    same = sum(a == b for a, b in zip(found.moved_frames, again.frames, strict=False))
    same_seen = sum(digest == again.frames[number] for number, digest in seen.items())
    frames_equal = same == len(found.moved_frames) == len(again.frames) and same_seen == len(seen)
    lates = lateness(found)
    states_equal = equal == as_replayed == len(compared) == len(rows)
    return {
        "moves": len(rows),
        "moves_at_rest": len(found.moves.at_rest),
        "rests": found.rests,
        "not_moved": [[report.outcome.value, report.reason] for report in found.moves.others],
        "digests_equal": equal,
        "states_compared_with_replay": len(compared),
        "states_equal_to_replay": as_replayed,
        "frames": len(found.moved_frames),
        "frames_replayed": len(again.frames),
        "frames_equal_to_replay": same,
        "checks_compared_with_replay": len(found.checks),
        "checks_equal_to_replay": checks_equal,
        "frames_seen": len(seen),
        "frames_seen_equal_to_replay": same_seen,
        "blocks_per_move": round(len(found.moved) / max(1, len(rows)), 2),
        "bit_identical": states_equal and frames_equal and checks_equal == len(found.checks),
        "no_added_miss": lates["blocks_late"] <= lates["blocks_late_control"],
        "pause_ms": spread([row["pause_ms"] for row in rows]),
        "replay_compute_ms": spread(again.compute_ms),
        **lates,
    }


def _as_replayed(check: Checked, again: Replayed) -> bool:
    """Whether a retired copy's block is the replay's: its frames, and the state after it."""
    first = check.block * len(check.frames)
    frames = tuple(again.frames[first : first + len(check.frames)])
    return (frames, again.states.get(check.block + 1)) == (check.frames, check.state_digest)


def samples_of(found: Duel, again: Replayed) -> dict[str, Any]:
    """Return everything that was measured."""
    return {
        "moves": [move_row(report) for report in found.moves.committed],
        "not_moved": [move_row(report) for report in found.moves.others],
        "at_rest": found.moves.at_rest,
        "moved_blocks": found.moved,
        "control_blocks": found.control,
        "inputs": found.moved_log,
        "inputs_control": found.control_log,
        "frames": found.moved_frames,
        "frames_seen": found.moved_seen["frames"],
        "frames_replayed": again.frames,
        "states_replayed": again.states,
        "replay_compute_ms": again.compute_ms,
    }


if __name__ == "__main__":
    main()
