"""Many real moves in a row, a share of them with a fault in the middle; everything is checked after each.

One world at a time is played over the real play wire and moved from worker to worker, by every strategy. A share of the
worlds is protected. An end is killed, stopped or cut off at a point of the move, or both fall silent there; so does who
keeps a snapshot; and the wall clock is set. After each fault: who owns the world (one worker, which plays), whether
every frame came once, in order and as an engine makes it that was never moved, what the operator is told, and whether
every slot is free again; a protected world is never lost. Workers are real processes that hash pictures beside the
next block; the engine is one of digests.
"""

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.chaos_faults import FAULTS, OF_KEEPERS, Trip, hurt_move, moved
from bench.numbers import spread
from bench.record import Recorder, parser
from tests.faults.house import FLEET, House, equal_to_an_unmoved_world, eventually, house_of, played, quiet, settled
from tests.faults.nursery import ENGINE, nursery_in
from tests.faults.watcher import Watcher
from worldmove.fleet.views import SessionState
from worldmove.move.strategy import WIRED

WORKERS = ("worker-1", "worker-2", "worker-3")
CHAOS = replace(FLEET, workers=WORKERS, protect_again_s=0.1, snapshot_s=1.5)
Row = dict[str, Any]


def main() -> None:
    """Run and write."""
    options = options_of(None)
    quiet()
    recorder = Recorder("chaos", options)
    rows: list[Row] = []
    asyncio.run(run(options, rows, lambda: recorder.keep(summary_of(rows), {"moves": rows}, Path(options.out))))
    recorder.write(summary_of(rows), {"moves": rows})


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("chaos", __doc__)
    options.set_defaults(engine=ENGINE)
    options.add_argument("--moves", type=int, default=2000)
    options.add_argument("--share", type=float, default=0.15, help="of moves with a fault")
    options.add_argument("--protect", type=int, default=4, help="blocks between two snapshots of a protected world")
    options.add_argument("--protected-share", type=float, default=0.6, help="of worlds that are protected")
    options.add_argument("--moves-per-world", type=int, default=25, help="before the next world is opened")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--for-s", type=float, default=2200.0, help="seconds after which no further world is begun")
    return options.parse_args(arguments)


async def run(options: argparse.Namespace, rows: list[Row], keep: Callable[[], None]) -> None:
    """Open worlds and move them about until there were enough moves; add them to ``rows``, and keep each world's."""
    rng, loop = random.Random(options.seed), asyncio.get_running_loop()
    until = loop.time() + options.for_s
    with TemporaryDirectory(prefix="worldmove-chaos-") as folder:
        async with (
            nursery_in(Path(folder)) as nursery,
            house_of(nursery, fleet=CHAOS, num_slots=4, hashed_beside=True) as house,
        ):
            while len(rows) < options.moves and loop.time() < until:
                left = min(options.moves_per_world, options.moves - len(rows))
                rows += await one_world(house, rng, left, options)
                keep()


async def one_world(house: House, rng: random.Random, num_moves: int, options: argparse.Namespace) -> list[Row]:
    """Play one world until it was moved so often, or is lost. A share of the worlds is protected."""
    rows: list[Row] = []
    protect = options.protect if rng.random() < options.protected_share else 0
    async with played(house, rng.choice(WORKERS), protect) as (session, watcher):
        while len(rows) < num_moves and not watcher.lost:
            fault = rng.choice(FAULTS) if rng.random() < options.share else None
            rows.append(await one_move(house, rng, session, watcher, fault))
        equal_to_an_unmoved_world(house, session, watcher)
    return rows


async def one_move(house: House, rng: random.Random, session: str, watcher: Watcher, fault: str | None) -> Row:
    """Move the world to another worker, perhaps with a fault on the way; check, and return what there is to say."""
    await house.all_answer()
    view, known = house.desk.view(session), len(house.controller.failovers())
    if view.protect_every:
        await eventually(lambda: is_kept(house, session), f"{session} is kept")
    owner = house.desk.view(session).owner
    to, strategy = rng.choice([worker for worker in WORKERS if worker != owner]), rng.choice(WIRED)
    keeper = house.desk.view(session).keeper or ""
    trip = Trip(session=session, source=owner, to=to, strategy=strategy, keeper=keeper)
    if fault in OF_KEEPERS and not keeper:
        fault = fault.removeprefix("keeper ")  # nobody keeps it: one of its ends is hurt
    row: Row = {"session": session, "from": owner, "to": to, "strategy": strategy.value, "fault": fault}
    row |= {"protected": bool(view.protect_every), "keeper": keeper or None}
    report, told = (await moved(house, trip), {}) if fault is None else await hurt_move(house, rng, trip, fault)
    found = await settled(house, session, watcher, report, more=3)
    require_rightly_lost(row | told, found.lost_why)
    return (
        row
        | told
        | {
            "outcome": report.outcome.value,
            "reason": report.reason,
            "detail": report.detail,
            "pause_ms": None if report.pause_s is None else round(report.pause_s * 1000, 3),
            "took_ms": round(report.took_s * 1000, 1),
            "owner": found.owner,
            "epoch": found.epoch,
            "blocks": found.blocks,
            "lost": found.lost_why,
            "failovers": [report.outcome.value for report in house.controller.failovers()[known:]],
        }
    )


def is_kept(house: House, session: str) -> bool:
    """Whether a worker keeps a snapshot of a session that does not play it, or it is lost."""
    view = house.desk.view(session)
    return (view.keeper or view.owner) != view.owner or view.state is SessionState.LOST


def require_rightly_lost(row: Row, lost_why: str) -> None:
    """Nothing but the death of an end makes a world lost, and of one that is kept elsewhere nothing that kills one."""
    if lost_why and (row["fault"] != "kill" or row["protected"]):
        raise AssertionError(f"lost ({lost_why}): {row}")


def summary_of(rows: Sequence[Row]) -> Row:
    """Say what came out. Every row was checked as it was made: a breach would have ended the run."""
    hurt = [row for row in rows if row["fault"]]
    reached = [row for row in hurt if row["reached"]]
    return {
        "moves": len(rows),
        "with_faults": len(hurt),
        "with_faults_at_their_point": len(reached),
        "with_kills_or_stops_at_their_point": sum(is_of_processes(row) for row in reached),
        "share_with_kills_or_stops": round(sum(map(is_of_processes, reached)) / max(1, len(rows)), 4),
        "faults": dict(Counter(f"{row['fault']} {row['hurt']}" for row in reached)),
        "strategies": dict(Counter(row["strategy"] for row in rows)),
        "strategies_with_faults": dict(Counter(row["strategy"] for row in reached)),
        "moves_of_protected_worlds": sum(row["protected"] for row in rows),
        "protected_with_faults": sum(row["protected"] for row in reached),
        "protected_lost": sum(row["protected"] and bool(row["lost"]) for row in rows),
        "failovers": dict(Counter(outcome for row in rows for outcome in row["failovers"])),
        "outcomes_without_fault": dict(Counter(row["outcome"] for row in rows if not row["fault"])),
        "outcomes_with_fault": dict(Counter(f"{row['fault']}: {row['outcome']}" for row in reached)),
        "worlds": len({row["session"] for row in rows}),
        "worlds_lost": sum(bool(row["lost"]) for row in rows),
        "worlds_lost_without_kill": sum(bool(row["lost"]) and row["fault"] != "kill" for row in rows),
        "frames_equal_to_replay": sum(blocks_of(rows).values()),
        "pause_ms_without_fault": spread([row["pause_ms"] for row in rows if not row["fault"] and row["pause_ms"]]),
    }


def is_of_processes(row: Row) -> bool:
    """Whether a process was killed or stopped."""
    return row["fault"] not in ("cut", "clock")


def blocks_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return, by world, how many frames were compared with a replay in the end."""
    return {row["session"]: row["blocks"] for row in rows}


if __name__ == "__main__":
    main()
