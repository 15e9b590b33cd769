"""One case: a session under play is moved, a worker is hurt at a point of that move, and everything is checked."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.faults.house import House, Outcome, eventually, played, settled
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionState, WorkerState

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
    until_told: bool = False,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Hurt:
    """Move a session from worker-1 to worker-2, and have ``action`` happen to a worker at a point of that move.

    A stopped worker is woken after ``meanwhile``, where that is given; else when it has been suspected for a little,
    or, ``until_told``, when the move's report is there.
    """
    board, asleep = house.board(worker), None
    async with played(house, SOURCE) as (session, watcher):
        board.order(action, point)
        moving = asyncio.create_task(house.move(session, DESTINATION))
        try:
            await eventually(lambda: board.answer == point, f"{worker} comes to {point!r}")
            if meanwhile is not None:
                await meanwhile()
                house.signal(worker, signal.SIGCONT)
            elif action is Action.STOP:
                asleep = await _sleep(house, session, worker, moving if until_told else None)
        finally:
            board.clear()
            report = await moving
        outcome = await settled(house, session, watcher, report)
    return Hurt(outcome=outcome, watcher=watcher, asleep=asleep)


async def _sleep(
    house: House, session: str, worker: str, moving: "asyncio.Task[MoveReport] | None"
) -> tuple[SessionState, str]:
    """Let a stopped worker be suspected, and wake it."""
    await eventually(lambda: house.worker(worker).state is WorkerState.SUSPECTED, f"{worker} is suspected")
    if moving is None:
        await asyncio.sleep(ASLEEP_S)
    else:
        await eventually(moving.done, "the operator is told")
    view = house.desk.view(session)
    house.signal(worker, signal.SIGCONT)
    return view.state, view.owner
