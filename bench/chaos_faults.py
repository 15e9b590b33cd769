"""The faults of ``bench.chaos``: who is hurt where in one move, what is done to it, and what must come of it."""

import asyncio
import random
import signal
from dataclasses import dataclass
from typing import Any

from tests.faults.house import FLEET, House, eventually
from tests.faults.phases import DESTINATION_POINTS, EARLY_DESTINATION, EARLY_SOURCE, KEEPING, SOURCE_POINTS
from tests.faults.points import Action
from worldmove.errors import UserError
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import WorkerState
from worldmove.move.strategy import Strategy

FAULTS = ("kill", "stop", "cut", "both stop", "clock", "keeper kill", "keeper stop")
OF_KEEPERS = ("keeper kill", "keeper stop")
ACTIONS = {"kill": Action.KILL, "keeper kill": Action.KILL}
"""What happens at the point; all others stop there first."""
REACHED_S = 1.5
"""How long a move may take to come to the point of its fault."""
STEPS_S = (-86_400.0, -3600.0, -1.0, 0.5, 3600.0, 86_400.0)
"""How far a wall clock is set, either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One move that is to be made: whose session, from where, to where, how, and who keeps a snapshot of it."""

    session: str
    source: str
    to: str
    strategy: Strategy
    keeper: str = ""


async def moved(house: House, trip: Trip) -> MoveReport:
    """Move, when the move before has left nothing in the way."""
    while True:
        try:
            return await house.move(trip.session, trip.to, strategy=trip.strategy)
        except UserError as error:
            if error.code not in ("moving", "worker_gone", "worker_suspected"):
                raise
            await asyncio.sleep(0.02)


async def hurt_move(house: House, rng: random.Random, trip: Trip, fault: str) -> tuple[MoveReport, dict[str, Any]]:
    """Move, and have a fault happen on the way; return the report, and what there is to say of the fault."""
    role, worker, point = drawn(rng, trip, fault)
    if fault == "clock":
        return await clock_set(house, rng, trip, {"hurt": "server", "point": "", "reached": True})
    board = house.board(worker)
    board.order(ACTIONS.get(fault, Action.STOP), point)
    moving = asyncio.create_task(moved(house, trip))
    try:
        await eventually(lambda: board.answer == point, within_s=REACHED_S)
        reached = True
    except AssertionError:
        reached = False
    told: dict[str, Any] = {"hurt": role, "point": point, "reached": reached}
    if reached and fault == "both stop":
        house.signal(trip.to if worker == trip.source else trip.source, signal.SIGSTOP)
        told["asleep_ms"] = await both_asleep(house, rng, trip)
    elif reached and fault == "cut":
        house.cables.of(worker).cut()
        house.signal(worker, signal.SIGCONT)
    elif reached and fault in ("stop", "keeper stop"):
        told["asleep_ms"] = await asleep(house, rng, worker, moving)
    board.clear()
    house.signal(worker, signal.SIGCONT)  # it may have come there just now
    return await moving, told


def drawn(rng: random.Random, trip: Trip, fault: str) -> tuple[str, str, str]:
    """Draw who is hurt: role, worker and point."""
    if fault in OF_KEEPERS:
        return "keeper", trip.keeper, rng.choice(KEEPING)
    if rng.random() < 0.5:
        return "source", trip.source, rng.choice((*SOURCE_POINTS, *EARLY_SOURCE.get(trip.strategy, ())))
    return "destination", trip.to, rng.choice((*DESTINATION_POINTS, *EARLY_DESTINATION.get(trip.strategy, ())))


async def clock_set(
    house: House, rng: random.Random, trip: Trip, told: dict[str, Any]
) -> tuple[MoveReport, dict[str, Any]]:
    """Set the server's wall clock while the move is under way, and once more before its end, perhaps."""
    moving = asyncio.create_task(moved(house, trip))
    steps = [rng.choice(STEPS_S) for _ in range(rng.choice((1, 2)))]
    for step_s in steps:
        await asyncio.sleep(rng.uniform(0.0, 0.03))
        house.wall_clock_offset_s += step_s
    return await moving, told | {"steps_s": steps}


async def asleep(house: House, rng: random.Random, worker: str, moving: "asyncio.Task[MoveReport]") -> float:
    """Let a stopped worker sleep: for less than its lease, for a little more, or until the operator is told."""
    loop = asyncio.get_running_loop()
    begin, how = loop.time(), rng.choice(("short", "lease", "told"))
    if how == "short":
        await asyncio.sleep(rng.uniform(0.0, FLEET.worker_lease_s))
    else:
        await suspected(house, worker)
        await (eventually(moving.done) if how == "told" else asyncio.sleep(rng.uniform(0.0, 0.4)))
    house.signal(worker, signal.SIGCONT)
    return round((loop.time() - begin) * 1000, 1)


async def suspected(house: House, worker: str) -> None:
    """Return once a worker's lease has lapsed."""
    await eventually(lambda: house.worker(worker).state is WorkerState.SUSPECTED, f"{worker} is suspected")


async def both_asleep(house: House, rng: random.Random, trip: Trip) -> float:
    """Let both ends sleep until another worker has the session, where it is kept; else past their leases."""
    loop = asyncio.get_running_loop()
    begin, ends = loop.time(), [trip.source, trip.to]
    for end in ends:
        await suspected(house, end)
    if trip.keeper and trip.keeper not in ends:
        await eventually(lambda: house.desk.view(trip.session).owner not in ends, "the keeper's copy goes on")
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    rng.shuffle(ends)
    for end in ends:
        house.signal(end, signal.SIGCONT)
        await asyncio.sleep(rng.uniform(0.0, 0.2))
    return round((loop.time() - begin) * 1000, 1)
