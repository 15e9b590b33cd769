"""Many real moves in a row, a share of them with a worker killed, stopped or cut off in the middle; everything checked.

One world at a time is played over the real play wire and moved from worker to worker. After each fault: who owns it
(one worker, which plays), whether every frame came once, in order and as an engine makes it that was never moved, what
the operator is told, and whether every slot is free again. Workers are real processes; the engine is one of digests.
"""

import argparse
import asyncio
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.numbers import spread
from bench.record import Recorder, parser
from tests.faults.house import FLEET, House, equal_to_an_unmoved_world, eventually, house_of, played, quiet, settled
from tests.faults.nursery import ENGINE, nursery_in
from tests.faults.phases import DESTINATION_POINTS, SOURCE_POINTS
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.errors import UserError
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import WorkerState

WORKERS = ("worker-1", "worker-2", "worker-3")
FAULTS = ("kill", "stop", "cut")
REACHED_S = 1.5
"""How long a move may take to come to the point of its fault."""


def main() -> None:
    """Run and write."""
    options = options_of(None)
    quiet()
    recorder = Recorder("chaos", options)
    rows: list[dict[str, Any]] = []
    asyncio.run(run(options, rows, lambda: recorder.keep(summary_of(rows), {"moves": rows}, Path(options.out))))
    recorder.write(summary_of(rows), {"moves": rows})


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("chaos", __doc__)
    options.set_defaults(engine=ENGINE)
    options.add_argument("--moves", type=int, default=2000)
    options.add_argument("--share", type=float, default=0.15, help="of moves with a fault")
    options.add_argument("--moves-per-world", type=int, default=25, help="before the next world is opened")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--for-s", type=float, default=2200.0, help="seconds after which no further world is begun")
    return options.parse_args(arguments)


async def run(options: argparse.Namespace, rows: list[dict[str, Any]], keep: Callable[[], None]) -> None:
    """Open worlds and move them about until there were enough moves; add them to ``rows``, and keep each world's."""
    rng, loop = random.Random(options.seed), asyncio.get_running_loop()
    until = loop.time() + options.for_s
    with TemporaryDirectory(prefix="worldmove-chaos-") as folder:
        async with (
            nursery_in(Path(folder)) as nursery,
            house_of(nursery, fleet=replace(FLEET, workers=WORKERS)) as house,
        ):
            while len(rows) < options.moves and loop.time() < until:
                left = min(options.moves_per_world, options.moves - len(rows))
                rows += await one_world(house, rng, left, options.share)
                keep()


async def one_world(house: House, rng: random.Random, num_moves: int, share: float) -> list[dict[str, Any]]:
    """Play one world until it was moved so often, or is lost."""
    rows: list[dict[str, Any]] = []
    async with played(house, rng.choice(WORKERS)) as (session, watcher):
        while len(rows) < num_moves and not watcher.lost:
            fault = rng.choice(FAULTS) if rng.random() < share else None
            rows.append(await one_move(house, rng, session, watcher, fault))
        equal_to_an_unmoved_world(house, session, watcher)
    return rows


async def one_move(
    house: House, rng: random.Random, session: str, watcher: Watcher, fault: str | None
) -> dict[str, Any]:
    """Move the world to another worker, perhaps with a fault on the way; check, and return what there is to say."""
    await house.all_answer()
    owner = house.desk.view(session).owner
    to = rng.choice([worker for worker in WORKERS if worker != owner])
    row: dict[str, Any] = {"session": session, "from": owner, "to": to, "fault": fault}
    if fault is None:
        report = await moved(house, session, to)
    else:
        hurt = rng.choice((owner, to))
        row |= {"hurt": "source" if hurt == owner else "destination"}
        report, told = await hurt_move(house, rng, session, to, hurt, fault)
        row |= told
    found = await settled(house, session, watcher, report, more=3)
    assert not found.lost_why or fault == "kill", row  # nothing but a death makes a world lost
    return row | {
        "outcome": report.outcome.value,
        "reason": report.reason,
        "detail": report.detail,
        "pause_ms": None if report.pause_s is None else round(report.pause_s * 1000, 3),
        "took_ms": round(report.took_s * 1000, 1),
        "owner": found.owner,
        "epoch": found.epoch,
        "blocks": found.blocks,
        "lost": found.lost_why,
    }


async def hurt_move(
    house: House, rng: random.Random, session: str, to: str, worker: str, fault: str
) -> tuple[MoveReport, dict[str, Any]]:
    """Move, and have a fault happen to one end at a point of it that is drawn."""
    point = rng.choice(DESTINATION_POINTS if worker == to else SOURCE_POINTS)
    board = house.board(worker)
    board.order(Action.KILL if fault == "kill" else Action.STOP, point)
    moving = asyncio.create_task(moved(house, session, to))
    reached = True
    try:
        await eventually(lambda: board.answer == point, within_s=REACHED_S)
    except AssertionError:
        reached = False
    board.clear()
    told: dict[str, Any] = {"point": point, "reached": reached}
    if reached and fault == "cut":
        house.cables.of(worker).cut()
        house.signal(worker, signal.SIGCONT)
    elif reached and fault == "stop":
        told["asleep_ms"] = await asleep(house, rng, worker, moving)
    return await moving, told


async def asleep(house: House, rng: random.Random, worker: str, moving: "asyncio.Task[MoveReport]") -> float:
    """Let a stopped worker sleep: for less than its lease, for a little more, or until the operator is told."""
    loop = asyncio.get_running_loop()
    begin, how = loop.time(), rng.choice(("short", "lease", "told"))
    if how == "short":
        await asyncio.sleep(rng.uniform(0.0, FLEET.worker_lease_s))
    else:
        await eventually(lambda: house.worker(worker).state is WorkerState.SUSPECTED, f"{worker} is suspected")
        await (eventually(moving.done) if how == "told" else asyncio.sleep(rng.uniform(0.0, 0.4)))
    house.signal(worker, signal.SIGCONT)
    return round((loop.time() - begin) * 1000, 1)


async def moved(house: House, session: str, to: str) -> MoveReport:
    """Move, when the move before has left nothing in the way."""
    while True:
        try:
            return await house.move(session, to)
        except UserError as error:
            if error.code not in ("moving", "worker_gone", "worker_suspected"):
                raise
            await asyncio.sleep(0.02)


def summary_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say what came out. Every row was checked as it was made: a breach would have ended the run."""
    hurt = [row for row in rows if row["fault"]]
    reached = [row for row in hurt if row["reached"]]
    return {
        "moves": len(rows),
        "with_faults": len(hurt),
        "with_faults_at_their_point": len(reached),
        "with_kills_or_stops_at_their_point": sum(row["fault"] != "cut" for row in reached),
        "share_with_kills_or_stops": round(sum(row["fault"] != "cut" for row in reached) / max(1, len(rows)), 4),
        "faults": dict(Counter(f"{row['fault']} {row['hurt']}" for row in reached)),
        "outcomes_without_fault": dict(Counter(row["outcome"] for row in rows if not row["fault"])),
        "outcomes_with_fault": dict(Counter(f"{row['fault']}: {row['outcome']}" for row in reached)),
        "worlds": len({row["session"] for row in rows}),
        "worlds_lost": sum(bool(row["lost"]) for row in rows),
        "worlds_lost_without_kill": sum(bool(row["lost"]) and row["fault"] != "kill" for row in rows),
        "frames_equal_to_replay": sum(blocks_of(rows).values()),
        "pause_ms_without_fault": spread([row["pause_ms"] for row in rows if not row["fault"] and row["pause_ms"]]),
    }


def blocks_of(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return, by world, how many frames were compared with a replay in the end."""
    return {row["session"]: row["blocks"] for row in rows}


if __name__ == "__main__":
    main()
