"""One case: in a move of a protected session several of the three workers fall silent; who goes on, and when."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.faults.house import House, equal_to_an_unmoved_world, eventually, played
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionState
from worldmove.move.strategy import Strategy

SOURCE, DESTINATION, KEEPER = "source", "destination", "keeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Who falls silent: one role at a point of the move (``passes``: so often passed before), then others at once.

    ``first`` hears an order on its board; ``others`` get the signal as soon as it stands there.
    """

    first: str
    point: str
    others: tuple[str, ...] = ()
    action: Action = Action.STOP
    strategy: Strategy = Strategy.BOUNDARY_COPY
    passes: int = 0

    @property
    def silent(self) -> tuple[str, ...]:
        return (self.first, *self.others)


@dataclass(slots=True, kw_only=True)
class Found:
    """What came of it. Times in seconds from the last signal; None: not within the time that it had."""

    granted_s: float | None = None
    """Until the ledger had given the session to another copy."""
    shown_s: float | None = None
    """Until the first block after that was shown."""
    told_s: float | None = None
    """Until the move's report was there."""
    move: MoveReport | None = None
    failover: FailoverReport | None = None
    owner: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    states: list[SessionState] = field(default_factory=list)
    """What the operator saw of the session meanwhile, each once, in order."""
    heard: list[str] = field(default_factory=list)
    """What the player was told of it, each sentence in order."""


@asynccontextmanager
async def protected(house: House, owner: str) -> AsyncIterator[tuple[str, Watcher]]:
    """Have a session under play at a worker, of which another one keeps a snapshot."""
    async with played(house, owner) as (session, watcher):
        await eventually(lambda: bool(house.desk.view(session).keeper), "a snapshot is kept", 30.0)
        yield session, watcher


async def silenced(house: House, workers: Sequence[str], case: Silence, *, within_s: float, more: int = 6) -> Found:
    """Move a protected session from the first worker to one that does not keep it, and have workers fall silent.

    All are woken at the end; then it must go on as a world that nobody has hurt, wherever it is by then.
    """
    async with protected(house, workers[0]) as (session, watcher):
        found = await _fallen_silent(house, session, workers, case, within_s)
        await house.all_answer()
        until = len(watcher.frames) + more
        await eventually(lambda: len(watcher.frames) >= until, "it goes on once all are awake", 30.0)
        equal_to_an_unmoved_world(house, session, watcher)
        found.heard = [said["sentence"] for said in watcher.failovers]
    return found


async def _fallen_silent(house: House, session: str, workers: Sequence[str], case: Silence, within_s: float) -> Found:
    keeper = house.desk.view(session).keeper or ""
    to = next(worker for worker in workers[1:] if worker != keeper)
    roles = {SOURCE: workers[0], DESTINATION: to, KEEPER: keeper}
    board, known = house.board(roles[case.first]), len(house.controller.failovers())
    found = Found(roles=roles)
    board.order(case.action, case.point, passes=case.passes)
    moving = asyncio.create_task(house.move(session, to, strategy=case.strategy))
    try:
        await eventually(lambda: board.answer == case.point, f"{case.first} comes to {case.point!r}", 30.0)
        for role in case.others:
            house.signal(roles[role], signal.SIGSTOP)
        await _watched(house, session, moving, found, known, within_s)
    finally:
        for worker in workers:
            house.board(worker).clear()
            house.signal(worker, signal.SIGCONT)
        found.move = await moving
    return found


async def _watched(
    house: House, session: str, moving: "asyncio.Task[MoveReport]", found: Found, known: int, within_s: float
) -> None:
    """Note what comes about, and when, until all has or the time is over."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while (now := loop.time() - begun) < within_s:
        view = house.desk.view(session)
        if view.state not in found.states:
            found.states.append(view.state)
        mine = [report for report in house.controller.failovers()[known:] if report.session == session]
        if mine and found.granted_s is None:
            found.granted_s = now
        if mine:
            found.failover = mine[-1]
        if mine and found.shown_s is None and mine[-1].outcome is FailoverOutcome.RESUMED:
            found.shown_s, found.owner = now, mine[-1].destination
        if moving.done() and found.told_s is None:
            found.told_s = now
        if found.told_s is not None and found.shown_s is not None:
            return
        await asyncio.sleep(0.01)
