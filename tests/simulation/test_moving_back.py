"""A protected session goes to a worker that has something of it: a retired copy, or a snapshot in its last room."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from tests.simulation import run
from tests.simulation.course import Stage, close
from tests.simulation.run import directed
from tests.simulation.test_protection import (
    SESSION,
    another,
    ended,
    fill,
    goes_on,
    holds,
    kept,
    kill,
    owner,
    protected,
    until,
)
from worldmove.fleet.reports import MoveReport, Outcome

EVERY = 64
"""Blocks between two snapshots: sixteen seconds, and nobody waits for as long."""
COMPLETE = ("kept", "live", "frozen", "retired")
"""Phases in which a copy could go on with it where the owner is gone."""


async def move(stage: Stage, to: str) -> MoveReport:
    report: MoveReport = await stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False))
    return report


def keeper(stage: Stage) -> str:
    return (kept(stage) or ("", 0))[0]


def third(stage: Stage) -> str:
    """The worker that neither plays it nor keeps it."""
    return next(name for name in ("worker-1", "worker-2", "worker-3") if name not in (owner(stage), keeper(stage)))


def num_kept(stage: Stage) -> int:
    """How many other workers have a complete copy of it."""
    house = stage.server.house
    views = () if house is None else house.controller.workers()
    able = [view for view in views if any(c.session == SESSION and c.phase in COMPLETE for c in view.copies)]
    return sum(view.name != owner(stage) for view in able)


async def watched(stage: Stage, least: list[int]) -> None:
    """Note how few there ever were."""
    while True:
        least.append(num_kept(stage))
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("after_s", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("whither", [keeper, third])
def test_a_session_goes_back_at_once_to_the_worker_that_it_has_left_and_is_protected_all_the_while(
    whither: Callable[[Stage], str], after_s: float
) -> None:
    """That worker's retired copy stays until a newer snapshot is kept, which waits for no move that waits for it."""
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        first = whither(stage)
        assert (await move(stage, first)).outcome is Outcome.COMMITTED
        watching = asyncio.ensure_future(watched(stage, least))
        await asyncio.sleep(after_s)
        assert holds(stage, "worker-1") or whither is keeper  # which is replaced as soon as it plays
        back = await move(stage, "worker-1")
        assert (back.outcome, back.reason, back.tries) == (Outcome.COMMITTED, "done", 1)
        await goes_on(stage)
        watching.cancel()
        kill(stage, "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
    assert min(least) >= 1


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.5, 0.7, 0.9, 1.2])
def test_a_session_that_waits_to_go_back_outlives_its_worker_at_any_time(after_s: float) -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        await move(stage, third(stage))
        going_back = asyncio.ensure_future(move(stage, "worker-1"))
        await asyncio.sleep(after_s)
        kill(stage, owner(stage))
        await going_back
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_session_goes_to_its_keeper_whose_last_room_its_snapshot_takes_once_another_worker_keeps_one() -> None:
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        full = keeper(stage)
        filled = await stage.server.ask(lambda house: fill(house, full))
        watching = asyncio.ensure_future(watched(stage, least))
        moved = await move(stage, full)
        assert (moved.outcome, moved.reason) == (Outcome.COMMITTED, "done")
        watching.cancel()
        assert keeper(stage) not in ("", full)
        await goes_on(stage)
        kill(stage, full)
        await goes_on(stage)
        stage.watch.is_ending = True
        for name in filled:
            await close(stage, name)
        await ended(stage, tab)

    directed(course)
    assert min(least) >= 1


def test_a_move_to_a_full_keeper_is_refused_and_says_why_where_nobody_else_has_room_for_its_snapshot() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        full, begun = keeper(stage), kept(stage)
        filled = await stage.server.ask(fill)
        at = stage.loop.time()
        moved = await move(stage, full)
        assert (moved.outcome, moved.reason) == (Outcome.REFUSED, "no_slot")
        assert "one of them by the snapshot of this session that is kept there, until another worker" in moved.detail
        assert (stage.loop.time() - at < 1.0, kept(stage)) == (True, begun)
        stage.watch.is_ending = True
        for name in filled:
            await close(stage, name)
        await ended(stage, tab)

    directed(course)


def test_where_no_newer_snapshot_comes_in_time_the_refusal_says_until_when_the_copy_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, copy_s=0.5))

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        await move(stage, third(stage))
        stage.weather.rates["path_stalls"] = 1.0
        back = await move(stage, "worker-1")
        stage.weather.rates["path_stalls"] = 0.0
        assert (back.outcome, back.reason) == (Outcome.REFUSED, "copy_held")
        assert "a retired copy of s-1, which stays until another worker keeps a newer snapshot" in back.detail
        await goes_on(stage)
        await ended(stage, tab)

    directed(course)


def test_with_two_workers_of_two_slots_a_moved_session_is_never_without_a_second_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What its new owner keeps of it takes the room for the next snapshot there, and saves it from nothing."""
    monkeypatch.setattr(run, "WORKER", msgspec.structs.replace(run.WORKER, num_slots=2))
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, workers=("worker-1", "worker-2")))
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        watching = asyncio.ensure_future(watched(stage, least))
        for to in ("worker-2", "worker-1", "worker-2"):
            assert (await move(stage, to)).outcome is Outcome.COMMITTED
        await until(stage, lambda: keeper(stage) == "worker-1", "it is kept by who does not play it")
        watching.cancel()
        kill(stage, "worker-2")
        await goes_on(stage)
        stage.watch.is_ending = True
        await tab.end()
        await close(stage, SESSION)

    assert directed(course).trace.counts["lost"] == 0
    assert min(least) >= 1


@pytest.mark.parametrize("goes", ["told to end", "killed"])
def test_one_that_comes_to_its_keeper_from_a_worker_that_has_given_no_snapshot_has_a_second_copy_all_the_while(
    goes: str,
) -> None:
    """Whoever it leaves stays for it, however it had got there: who gave the newest snapshot may be gone by then."""
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        to = keeper(stage)
        assert (await move(stage, third(stage))).outcome is Outcome.COMMITTED
        await goes_on(stage, 4)
        first = stage.hosts.nodes["worker-1"]
        if goes == "killed":
            kill(stage, "worker-1")
        else:
            first.terminate()
            await until(stage, lambda: not first.has_power, "it ends")
        await asyncio.sleep(1.0)
        assert (await move(stage, to)).outcome is Outcome.COMMITTED
        stage.weather.rates["path_stalls"] = 1.0  # the next snapshot is on its way for long
        watching = asyncio.ensure_future(watched(stage, least))
        await goes_on(stage)
        watching.cancel()
        stage.weather.rates["path_stalls"] = 0.0
        kill(stage, owner(stage))
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
    assert min(least) >= 1


def test_a_worker_that_is_told_to_end_with_all_that_there_is_beside_the_owner_waits_for_a_newer_snapshot() -> None:
    """What the owner itself has kept, before it was moved there, is no second copy."""
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        to = keeper(stage)
        assert (await move(stage, to)).outcome is Outcome.COMMITTED
        stage.weather.rates["path_stalls"] = 1.0  # the next snapshot is on its way for long
        watching = asyncio.ensure_future(watched(stage, least))
        await asyncio.sleep(1.0)
        assert keeper(stage) != to
        first = stage.hosts.nodes["worker-1"]
        first.terminate()
        await goes_on(stage, 4)
        stage.weather.rates["path_stalls"] = 0.0
        await until(stage, lambda: not first.has_power, "it ends")
        await goes_on(stage, 2)
        watching.cancel()
        kill(stage, to)
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
    assert min(least) >= 1


@pytest.mark.parametrize("every", [3, 5])
def test_a_renewal_that_finds_no_room_for_a_moment_lets_nothing_go(every: int) -> None:
    """Its owner copies another session aside, all the time: there is no room there now, and in a moment there is."""
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        to = keeper(stage)
        other = await another(stage, to, every=every)
        assert (await move(stage, to)).outcome is Outcome.COMMITTED
        watching = asyncio.ensure_future(watched(stage, least))
        await goes_on(stage, 40)
        watching.cancel()
        kill(stage, to)
        await goes_on(stage)
        stage.watch.is_ending = True
        await close(stage, other)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
    assert min(least) >= 1


@pytest.mark.parametrize("rests", [False, True])
def test_a_retired_copy_that_did_not_hear_in_time_that_it_may_go_is_told_again(*, rests: bool) -> None:
    """Its worker slept with the word in its socket: that counts for nothing, and there may be no next snapshot."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        assert (await move(stage, keeper(stage))).outcome is Outcome.COMMITTED
        stage.loop.pause(stage.hosts.nodes["worker-1"].node)
        await asyncio.sleep(1.1)
        stage.loop.resume(stage.hosts.nodes["worker-1"].node)
        if rests:
            stage.watch.is_ending = True
            await tab.end()
            stage.watch.is_ending = False
        await until(stage, lambda: not holds(stage, "worker-1"), "it has gone", within_s=8.0)
        await ended(stage, tab)

    directed(course)


def test_a_retired_copy_is_not_let_go_for_room_that_its_owner_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has two slots, and its owner's are taken by what is played there: nothing can be copied aside."""
    monkeypatch.setattr(run, "WORKER", msgspec.structs.replace(run.WORKER, num_slots=2))
    least: list[int] = []

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=EVERY)
        to = third(stage)
        others = [await another(stage, "worker-1")]
        assert (await move(stage, to)).outcome is Outcome.COMMITTED
        watching = asyncio.ensure_future(watched(stage, least))
        others.append(await another(stage, to))
        await goes_on(stage, 80)
        watching.cancel()
        kill(stage, to)
        await goes_on(stage)
        stage.watch.is_ending = True
        await tab.end()
        for name in (others[0], SESSION):
            await close(stage, name)

    directed(course)
    assert min(least) >= 1
