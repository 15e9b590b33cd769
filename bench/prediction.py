"""The pause that admission expected beside the pause that came: moves of mixed strategies and speeds, under play.

One world is played over the real play wire and moved to and fro between two workers. Strategy and link are drawn for
each move; one that admission refuses is counted and not made. An error counts against 15 % of the pause or 2 ms,
whichever is more.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from bench.numbers import spread
from bench.player import Player
from bench.record import Recorder, parser, quiet, require_worker_path
from bench.walk import Walk
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import WIRED, Strategy, pick
from worldmove.serve.house import House
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

SESSION = "s-moved"
LINKS = ("as it is", "10gbit", "4gbit", "2gbit", "1gbit")
SHARE, LEAST_MS = 0.15, 2.0
TRIES_PER_MOVE = 4


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("prediction", options)
    rows = asyncio.run(measure(options))
    recorder.write(summary_of(rows), {"moves": rows})


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("prediction", __doc__)
    options.add_argument("--moves", type=int, default=120)
    options.add_argument("--strategies", default=",".join(strategy.value for strategy in WIRED))
    options.add_argument("--links", default=",".join(LINKS))
    options.add_argument("--seed", type=int, default=1)
    return options.parse_args(arguments)


async def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Move until there were enough moves."""
    worker = WorkerConfig(engine=options.engine, num_threads=options.threads, log_level="warning")
    server = ServerConfig(port=0, num_workers=2, worker=worker, keep_s=36_000.0)
    rng = random.Random(options.seed)
    wishes = [(pick(name), link) for name in options.strategies.split(",") for link in options.links.split(",")]
    async with inhabited(server, lambda text: print(text, file=sys.stderr)) as house:
        live = house.gateway.begin(SESSION)
        await house.controller.open(SESSION, options.seed, house.controller.workers()[0].name)
        player = Player(house.url, SESSION, Walk(options.seed), live.spec.frames_per_block)
        ended = asyncio.Event()
        playing = asyncio.create_task(player.play(lambda blocks: ended.is_set()))
        rows: list[dict[str, Any]] = []
        while sum(row["outcome"] == "committed" for row in rows) < options.moves:
            await player.blocks(player.num_blocks + 2)
            rows.append(await one_move(house, *rng.choice(wishes)))
            print(f"{len(rows)}: {rows[-1]}", file=sys.stderr)
            if len(rows) > TRIES_PER_MOVE * options.moves:
                raise RuntimeError("too few moves come about")
        ended.set()
        await playing
        return rows


async def one_move(house: House, strategy: Strategy, link: str) -> dict[str, Any]:
    """Move to the other worker, and return one row."""
    controller = house.controller
    owner = controller.owner(SESSION)
    if owner is None:
        raise RuntimeError("the world has no owner any more")
    to = next(view.name for view in controller.workers() if view.name != owner.worker)
    limit = None if link == LINKS[0] else link
    report = await house.gateway.settled(SESSION, await controller.move(SESSION, to, strategy=strategy, link=limit))
    return row_of(report, strategy.value, link)


def row_of(report: MoveReport, strategy: str, link: str) -> dict[str, Any]:
    """Return a move as one row of samples. Times in ms."""
    expected = report.expected
    committed = report.outcome is Outcome.COMMITTED
    return {
        "strategy": strategy,
        "link": link,
        "to": report.destination,
        "outcome": report.outcome.value,
        "reason": report.reason,
        "expected_ms": None if expected is None else round(expected.pause_s * 1000, 3),
        "pause_ms": round(report.pause_s * 1000, 3) if committed and report.pause_s is not None else None,
        "gap_ms": None if report.gap_s is None else round(report.gap_s * 1000, 3),
        "terms_ms": {} if expected is None else {name: round(took * 1000, 3) for name, took in expected.terms},
        "digests_equal": report.source_digest == report.destination_digest != "",
    }


def summary_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say how far expectation and outcome lie apart, of all moves and of those of which the like had been seen."""
    made = [row for row in rows if row["pause_ms"] is not None and row["expected_ms"] is not None]
    seen: Counter[tuple[str, str]] = Counter()
    after_first = []
    for row in made:
        kind = (row["strategy"], row["to"])
        if seen[kind]:
            after_first.append(row)
        seen[kind] += 1
    ordered = sorted(made, key=lambda row: str(row["strategy"]))
    by_strategy = {name: errors_of(list(same)) for name, same in groupby(ordered, key=lambda row: str(row["strategy"]))}
    late = [row for row in made if (row["gap_ms"] or 0.0) > 0]
    return {
        "moves": len(made),
        "refused": dict(Counter(row["reason"] for row in rows if row["outcome"] == "refused")),
        "not_made": dict(Counter(row["outcome"] for row in rows if row["outcome"] not in ("committed", "refused"))),
        "all": errors_of(made),
        "after_the_first_of_its_kind": errors_of(after_first),
        "by_strategy": by_strategy,
        "goal_met": errors_of(made)["of_allowance"].get("p90", float("inf")) <= 1.0,
        "moves_that_missed_their_horizon": len(late),
        "digests_equal": sum(row["digests_equal"] for row in made),
    }


def errors_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the spread of the errors: in ms, as a share of the pause, and as a share of what is allowed."""
    known = [(row["expected_ms"], row["pause_ms"]) for row in rows if None not in (row["expected_ms"], row["pause_ms"])]
    errors = [(abs(expected - pause), pause) for expected, pause in known]
    return {
        "pause_ms": spread([pause for _, pause in errors]),
        "error_ms": spread([error for error, _ in errors]),
        "error_share": spread([error / pause for error, pause in errors]),
        "of_allowance": spread([error / max(LEAST_MS, SHARE * pause) for error, pause in errors]),
    }


if __name__ == "__main__":
    main()
