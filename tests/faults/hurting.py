"""One case: a session under play is moved, a worker is hurt at a point of that move, and everything is checked."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.faults.house import House, Outcome, eventually, played, settled
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.reports import Outcome as Told
from worldmove.fleet.views import SessionState, WorkerState
from worldmove.move.strategy import Strategy

SOURCE, DESTINATION = "worker-1", "worker-2"
ASLEEP_S = 0.2
"""How long a suspected worker goes on sleeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurt:
    """What came of a case. ``asleep``: where the session stood, and whose it was, just before the sleeper was woken."""

    outcome: Outcome
    watcher: Watcher
    asleep: tuple[SessionState, str] | None


async def hurt(
    house: House,
    worker: str,
    action: Action,
    point: str,
    *,
    strategy: Strategy = Strategy.BOUNDARY_COPY,
    until_told: bool = False,
    until_at: str = "",
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Hurt:
    """Move a session from worker-1 to worker-2, and have ``action`` happen to a worker at a point of that move.

    A stopped worker is woken after ``meanwhile``, where that is given; else when it has been suspected for a little,
    or, ``until_told``, when the move's report is there, or, ``until_at``, when that worker has the session.
    """
    board, asleep = house.board(worker), None
    async with played(house, SOURCE) as (session, watcher):
        board.order(action, point)
        moving = asyncio.create_task(house.move(session, DESTINATION, strategy=strategy))
        try:
            await eventually(lambda: board.answer == point, f"{worker} comes to {point!r}")
            if meanwhile is not None:
                await meanwhile()
                house.signal(worker, signal.SIGCONT)
            elif action is Action.STOP:
                await eventually(lambda: house.worker(worker).state is WorkerState.SUSPECTED, f"{worker} is suspected")
                await _slept(house, session, moving if until_told else None, until_at)
                view = house.desk.view(session)
                asleep = view.state, view.owner
                house.signal(worker, signal.SIGCONT)
        finally:
            board.clear()
            report = await moving
        outcome = await settled(house, session, watcher, report)
    assert told_truly(outcome), outcome
    return Hurt(outcome=outcome, watcher=watcher, asleep=asleep)


async def _slept(house: House, session: str, moving: "asyncio.Task[MoveReport] | None", until_at: str) -> None:
    """Return when a suspected worker may be woken."""
    if moving is not None:
        await eventually(moving.done, "the operator is told")
    elif until_at:
        await eventually(lambda: house.desk.view(session).owner == until_at, f"{until_at} has the session")
    else:
        await asyncio.sleep(ASLEEP_S)


def told_truly(found: Outcome) -> bool:
    """Whether what the operator was told is what came about. In doubt, nothing is claimed."""
    match found.report.outcome:
        case Told.IN_DOUBT:
            return True
        case Told.LOST:
            return bool(found.lost_why)
        case Told.COMMITTED:
            return found.epoch >= 2
    return not found.lost_why and (found.owner, found.epoch) != (DESTINATION, 2)
