"""An engine that raises in the middle of a block: its session goes on from another copy or ends, and no other does."""

import asyncio
import signal

from tests.faults.chain_engine import FAIL
from tests.faults.conftest import Ground
from tests.faults.house import House, equal_to_an_unmoved_world, eventually, played, settled
from tests.faults.hurting import DESTINATION, SOURCE, hurt
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionState

WHY = "worker-1: the engine failed to step a block: RuntimeError('the world has no such place')"


async def until_lost(house: House, session: str, watcher: Watcher) -> None:
    await eventually(lambda: bool(watcher.lost), f"{session} is said to be lost")
    assert next(view for view in house.controller.sessions() if view.name == session).state is SessionState.LOST
    equal_to_an_unmoved_world(house, session, watcher)


def test_a_world_whose_engine_raises_is_lost_and_its_neighbour_in_the_same_process_is_not(ground: Ground) -> None:
    async def run() -> tuple[Watcher, int | None, int | None]:
        house = ground.house
        async with played(house, SOURCE) as (broken, first), played(house, SOURCE) as (neighbour, second):
            pid = house.worker(SOURCE).pid
            await first.press(FAIL)
            await until_lost(house, broken, first)
            seen = len(second.frames)
            await eventually(lambda: len(second.frames) >= seen + 6, "the neighbour goes on")
            equal_to_an_unmoved_world(house, neighbour, second)
            await eventually(lambda: house.worker(SOURCE).slots_free == 2, "its slot is free")
            return first, pid, house.worker(SOURCE).pid

    watcher, before, after = ground.run(run())
    assert watcher.lost == [f"{WHY} and no other worker holds a copy"]
    assert watcher.errors == [WHY.removeprefix("worker-1: ")]
    assert before is not None
    assert before == after


def test_a_world_whose_engine_raises_once_goes_on_from_the_copy_that_it_left(ground: Ground) -> None:
    found = ground.run(hurt(ground.house, DESTINATION, Action.RAISE, "engine: in mid-step"))
    assert not found.outcome.lost_why
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 3)
    report = found.outcome.report
    what = "the engine failed to step a block: RuntimeError('ordered at engine: in mid-step')"
    assert (report.outcome, report.detail) in (
        (Outcome.ABORTED, f"worker-2 had shown no block, for {what}, and worker-1 went on"),
        (Outcome.COMMITTED, "Moved to worker-2"),  # it was told before its engine had begun
    )
    assert found.watcher.errors == ["the engine failed to step a block: RuntimeError('ordered at engine: in mid-step')"]


def test_an_engine_that_raises_at_its_source_in_mid_move_ends_the_move_and_says_why(ground: Ground) -> None:
    async def run() -> tuple[Outcome, str, list[str]]:
        house = ground.house
        async with played(house, SOURCE) as (session, watcher):
            house.board(DESTINATION).order(Action.STOP, "sent: Reserved")
            moving = asyncio.create_task(house.move(session, DESTINATION))
            await eventually(lambda: bool(house.board(DESTINATION).answer))
            await watcher.press(FAIL)
            await eventually(lambda: bool(watcher.errors), "the player is told")
            house.signal(DESTINATION, signal.SIGCONT)
            report = await moving
            await until_lost(house, session, watcher)
            await settled(house, session, watcher, report)
        return report.outcome, report.detail, watcher.lost

    outcome, detail, lost = ground.run(run())
    assert (outcome, detail) == (Outcome.LOST, "no copy is left")
    assert lost == [f"{WHY} and no other worker holds a copy"]


def test_a_world_whose_every_copy_raises_is_lost_and_both_workers_live(ground: Ground) -> None:
    async def run() -> list[str]:
        house = ground.house
        async with played(house, SOURCE) as (session, watcher):
            pids = [view.pid for view in house.controller.workers()]
            report = await house.move(session, DESTINATION)
            await watcher.press(FAIL)
            await until_lost(house, session, watcher)
            await settled(house, session, watcher, report)
            assert pids == [view.pid for view in house.controller.workers()]
            return watcher.lost

    (why,) = ground.run(run())
    assert "the world has no such place" in why
