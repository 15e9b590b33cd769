"""A worker that is told to end: what it plays, or is on its way to it, is moved away, and what became of it is said."""

import asyncio
from dataclasses import replace

import pytest

from tests.simulation import run
from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import (
    SESSION,
    ended,
    goes_on,
    kill,
    opened,
    owner,
    protected,
    reports,
    shown,
    until,
    why_lost,
)
from worldmove.fleet.reports import MoveReport, Outcome


async def played(stage: Stage) -> None:
    await until(stage, lambda: shown(stage) > 4, "it is played")


def moves(stage: Stage) -> tuple[MoveReport, ...]:
    assert stage.server.house is not None
    return stage.server.house.controller.moves()


async def told_to_end(stage: Stage, worker: str) -> None:
    leaving = stage.hosts.nodes[worker]
    leaving.terminate()
    await until(stage, lambda: not leaving.has_power, "it ends")


def is_moving(stage: Stage) -> bool:
    assert stage.server.house is not None
    return any(view.attempt for view in stage.server.house.controller.sessions())


def test_every_move_that_is_under_way_when_its_source_must_end_is_told_of_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its worker's time is over: the move comes to nothing by that, or not, and somebody says so."""
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, leave_s=0.4))

    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await played(stage)
        stage.weather.rates["path_stalls"] = 1.0
        await told_to_end(stage, "worker-1")
        assert is_moving(stage)
        await ended(stage, tab)

    stage = directed(course)
    assert [report.outcome for report in moves(stage)][-1] is Outcome.LOST
    assert Outcome.IN_DOUBT not in [report.outcome for report in moves(stage)]


@pytest.mark.parametrize("after_s", [0.02, 0.05, 0.1, 0.2, 0.3])
def test_what_is_on_its_way_to_a_worker_that_is_told_to_end_arrives_and_is_moved_on(after_s: float) -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await played(stage)
        moving = asyncio.ensure_future(
            stage.server.ask(lambda house: house.desk.move(SESSION, "worker-2", damage=False))
        )
        await asyncio.sleep(after_s)
        await told_to_end(stage, "worker-2")
        assert (await moving).outcome in (Outcome.COMMITTED, Outcome.REFUSED)
        assert owner(stage) not in ("", "worker-2")
        await goes_on(stage)
        await ended(stage, tab)

    stage = directed(course)
    assert reports(stage) == ()


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.04, 0.06, 0.08])
def test_what_is_being_opened_in_a_worker_that_is_told_to_end_is_moved_on_once_it_plays(after_s: float) -> None:
    async def course(stage: Stage) -> None:
        await stage.server.start()
        leaving = stage.hosts.nodes["worker-1"]
        stage.loop.call_later(after_s, leaving.terminate, context=stage.loop.context("world"))
        tab = await opened(stage, every=0)
        await until(stage, lambda: not leaving.has_power, "it ends")
        assert owner(stage) not in ("", "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    directed(course)


@pytest.mark.parametrize("after_s", [0.01, 0.3, 0.9])
def test_a_worker_that_is_told_to_end_while_no_server_is_there_is_left_by_the_next_one(after_s: float) -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await played(stage)
        stage.server.kill()
        leaving = stage.hosts.nodes["worker-1"]
        await asyncio.sleep(after_s)
        leaving.terminate()
        await asyncio.sleep(1.0 - after_s)
        await stage.server.start()
        await until(stage, lambda: not leaving.has_power, "it ends")
        assert owner(stage) not in ("", "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_worker_that_has_nothing_ends_at_once_where_no_server_is_there() -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await played(stage)
        stage.server.kill()
        idle = stage.hosts.nodes["worker-2"]
        idle.cut(5.0)
        await until(stage, lambda: not idle.is_linked, "it has no link any more")
        idle.terminate()
        await until(stage, lambda: not idle.has_power, "it ends", within_s=0.5)
        await stage.server.start()
        await goes_on(stage)
        await ended(stage, tab)

    directed(course)


@pytest.mark.parametrize("every", [0, 3])
def test_a_worker_whose_engine_never_returns_is_let_go_at_once_where_its_session_goes_on_from_a_snapshot(
    every: int,
) -> None:
    async def course(stage: Stage) -> None:
        await (protected(stage, every=every) if every else opened(stage, every=0))
        await played(stage)
        house = await stage.server.serving()
        stage.hosts.nodes["worker-1"].slow_down(2e3)
        await until(stage, lambda: house.gateway.stalls.stalled_s(SESSION) is not None, "it is called stalled")
        begun = stage.loop.time()
        stage.hosts.nodes["worker-1"].terminate()
        left = "worker_left worker=worker-1"
        await until(stage, lambda: any(left in line for line in stage.trace.lines), "it is let go")
        took.append(stage.loop.time() - begun)
        kill(stage, "worker-1")
        await (goes_on(stage) if every else until(stage, lambda: bool(why_lost(stage)), "it is lost"))

    took: list[float] = []
    directed(course)
    assert took[0] < 1.0 if every else run.FLEET.leave_s <= took[0] < run.FLEET.leave_s + 1.0
