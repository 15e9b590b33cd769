"""Workers that answer while their engines do not return, or not soon: directed courses in virtual time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.simulation import path
from tests.simulation.course import Stage, close
from tests.simulation.house import House
from tests.simulation.run import directed
from tests.simulation.test_protection import (
    SESSION,
    another,
    ended,
    goes_on,
    kept,
    opened,
    owner,
    protected,
    reports,
    shown,
    until,
)
from worldmove.fleet.mover import Mover
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import SessionView
from worldmove.fleet.worker_table import STUCK_S
from worldmove.move.strategy import Strategy


@pytest.mark.parametrize("num_others", [0, 1])
def test_a_session_that_is_moved_anywhere_goes_where_the_engine_returns(num_others: int) -> None:
    """No session is played where it does not: nobody owes a block there."""

    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        others = [await another(stage, "worker-2") for _ in range(num_others)]
        stage.hosts.nodes["worker-3"].keep_busy(3600.0)
        await asyncio.sleep(STUCK_S + 1.0)
        made = await stage.server.ask(moved_anywhere)
        assert (made.destination, made.outcome) == ("worker-2", Outcome.COMMITTED)
        stage.watch.is_ending = True
        for name in others:
            await close(stage, name)
        await ended(stage, tab)

    directed(course)


def moved_anywhere(house: House) -> Coroutine[Any, Any, MoveReport]:
    return house.desk.move(SESSION, None, damage=False)


def test_how_a_move_gets_on_is_known_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "PULL_S", (0.4, 0.4))

    heard, got_on = list[str](), Mover.got_on

    def hear(self: Mover, attempts: tuple[str, ...]) -> None:
        heard.extend(attempts)
        got_on(self, attempts)

    monkeypatch.setattr(Mover, "got_on", hear)

    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) >= 4, "it is played")

        def move(house: House) -> Coroutine[Any, Any, MoveReport]:
            return house.desk.move(SESSION, "worker-2", damage=False, strategy=Strategy.PRE_COPY.value)

        made = await stage.server.ask(move)
        assert made.outcome is Outcome.COMMITTED
        assert heard.count(made.attempt) >= 3
        await ended(stage, tab)

    directed(course)


@pytest.mark.parametrize("after_s", [0.0, 2.0])
def test_one_whose_engine_is_at_anothers_opening_for_long_is_moved_away_when_its_worker_is_told_to_end(
    after_s: float,
) -> None:
    """Its end is not what it goes on by: it goes on from its own state, and nothing is computed again."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=64)
        node, house = stage.hosts.nodes["worker-1"], await stage.server.serving()
        node.keep_busy(8.0)
        await until(stage, lambda: house.gateway.stalls.stalled_s(SESSION) is not None, "it is called stalled")
        await asyncio.sleep(after_s)
        node.terminate()
        await until(stage, lambda: not node.has_power, "its worker ends")
        assert reports(stage) == ()
        assert owner(stage) != "worker-1"
        await goes_on(stage)
        await ended(stage, tab)

    directed(course)


def test_a_move_that_is_asked_for_after_openings_is_made_when_the_engine_is_through_with_them() -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) >= 4, "it is played")
        stage.hosts.nodes["worker-1"].slow_down(40.0)

        def opening(house: House) -> Coroutine[Any, Any, SessionView]:
            return house.desk.open(seed=house.ids.next_seed(), on="worker-1", protect=0)

        def move(house: House) -> Coroutine[Any, Any, MoveReport]:
            return house.desk.move(SESSION, "worker-2", damage=False)

        openings = [asyncio.ensure_future(stage.server.ask(opening)) for _ in range(2)]
        await asyncio.sleep(0.01)
        moving = asyncio.ensure_future(stage.server.ask(move))
        await asyncio.gather(*openings)
        stage.hosts.nodes["worker-1"].slow_down(1.0)
        made = await moving
        assert (made.outcome, made.reason) == (Outcome.COMMITTED, "done")
        stage.watch.is_ending = True
        for each in openings:
            await close(stage, each.result().name)
        await ended(stage, tab)

    directed(course)


def test_a_keeper_that_takes_longer_than_anybody_waits_is_left_alone_with_it_and_is_not_filled() -> None:
    """Each piece of its work takes so long that it says nothing meanwhile: poisoning, and comparing."""

    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=4)
        await until(stage, lambda: shown(stage) >= 4, "it is played")
        for name in ("worker-2", "worker-3"):
            stage.hosts.nodes[name].copy_in(12.0)
        house, free = await stage.server.serving(), list[int]()
        for _ in range(600):
            await asyncio.sleep(0.2)
            free += [view.slots_free for view in house.controller.workers() if view.name != "worker-1"]
        assert min(free) == 1  # one that is kept, and one that is not waited for any more
        assert kept(stage) == ("worker-2", 0)
        for name in ("worker-2", "worker-3"):
            stage.hosts.nodes[name].copy_in(None)
        await until(stage, lambda: (kept(stage) or ("", 0))[1] > 0, "a newer one is kept")
        await ended(stage, tab)

    directed(course)
