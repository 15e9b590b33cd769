"""The pause of a move by replay beside that of a boundary copy, in one run, over links of several speeds."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from bench.duel import Duel, DuelConfig, Way, duel, move_row
from bench.numbers import spread
from bench.pause import lateness
from bench.record import Recorder, parser, quiet, require_worker_path
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import Strategy

GOAL_MS = 10.0
PATH = "as it is"
"""A link without a limit."""


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("while_it_plays", options)
    found = asyncio.run(measure(options))
    recorder.write(summary_of(found), samples_of(found))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("while_it_plays", __doc__)
    options.add_argument("--moves", type=int, default=60, help="moves that are committed, in all")
    options.add_argument("--links", nargs="*", default=["100mbit", "10mbit"], help="speeds beside the path as it is")
    options.add_argument("--seed", type=int, default=1)
    return options.parse_args(arguments)


async def measure(options: argparse.Namespace) -> Duel:
    """Move one world by either strategy over each link in turn, and none of the other."""
    links = [None, *options.links]
    ways = tuple(Way(strategy=strategy, link=link) for link in links for strategy in STRATEGIES)
    config = DuelConfig(
        engine=options.engine,
        threads=options.threads,
        workers=2,
        moves=options.moves,
        segment=options.moves,
        seed=options.seed,
        rest_moves=False,
        ways=ways,
    )
    return await duel(config, _at_once)


STRATEGIES = (Strategy.REPLAY, Strategy.BOUNDARY_COPY)


async def _at_once() -> None:
    """Nothing between two moves."""


def summary_of(found: Duel) -> dict[str, Any]:
    """Say what came out, by strategy and link."""
    reports = [*found.moves.committed, *found.moves.others]
    ways = sorted({(report.strategy, _link(report)) for report in reports})
    rows = {f"{strategy}, {link}": _way(reports, strategy, link) for strategy, link in ways}
    replays = [row["pause_ms"]["p50"] for name, row in rows.items() if name.startswith("replay") and row["moves"]]
    return {
        "ways": rows,
        "goal_ms": GOAL_MS,
        "replay_p50_ms": replays,
        "replay_goal_met": bool(replays) and max(replays) <= GOAL_MS,
        **lateness(found),
    }


def _way(reports: Sequence[MoveReport], strategy: str, link: str) -> dict[str, Any]:
    mine = [report for report in reports if (report.strategy, _link(report)) == (strategy, link)]
    done = [move_row(report) for report in mine if report.outcome is Outcome.COMMITTED]
    others = [f"{report.outcome.value}: {report.reason}" for report in mine if report.outcome is not Outcome.COMMITTED]
    expected = [1000 * report.expected.pause_s for report in mine if report.expected is not None]
    return {
        "moves": len(done),
        "not_moved": {word: others.count(word) for word in sorted(set(others))},
        "pause_ms": spread([row["pause_ms"] for row in done]) if done else None,
        "gap_ms": spread([row["gap_ms"] for row in done if row["gap_ms"] is not None]) if done else None,
        "took_ms": spread([row["took_ms"] for row in done]) if done else None,
        "digests_equal": sum(row["source_digest"] == row["destination_digest"] != "" for row in done),
        "num_bytes": done[0]["num_bytes"] if done else None,
        "expected_pause_ms": spread(expected) if expected else None,
    }


def _link(report: MoveReport) -> str:
    kind, _, rest = report.transport.partition("-")
    return rest.partition("-")[0] if kind == "throttled" else PATH


def samples_of(found: Duel) -> dict[str, Any]:
    """Return everything that was measured."""
    rows = [
        {**move_row(report), "strategy": report.strategy, "link": _link(report)} for report in found.moves.committed
    ]
    others = [{**move_row(report), "strategy": report.strategy, "link": _link(report)} for report in found.moves.others]
    return {"moves": rows, "not_moved": others, "moved_blocks": found.moved, "control_blocks": found.control}


if __name__ == "__main__":
    main()
