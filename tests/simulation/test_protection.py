"""A protected session outlives its worker: directed courses of shipped servers and workers, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import run
from tests.simulation.course import Stage, close
from tests.simulation.house import House
from tests.simulation.path import CONNECT_S
from tests.simulation.run import directed
from tests.simulation.tab import Tab
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import SessionState
from worldmove.move.strategy import Strategy
from worldmove.worker import inputs
from worldmove.worker.messages import KEPT, LetGo

SESSION = "s-1"


async def until(stage: Stage, holds: Callable[[], bool], what: str, within_s: float = 30.0) -> None:
    begun = stage.loop.time()
    while not holds():
        if stage.loop.time() - begun > within_s:
            stage.trace.fail(f"in {within_s:.0f} s it did not come about that {what}")
        await asyncio.sleep(0.02)


async def opened(stage: Stage, *, every: int = 4) -> Tab:
    """Open a protected session with a player."""
    if stage.server.house is None:
        await stage.server.start()

    async def begin(house: House) -> Any:
        return await house.desk.open(seed=house.ids.next_seed(), on="worker-1", protect=every)

    await stage.server.ask(begin)
    tab = Tab(
        SESSION, server=stage.server, loop=stage.loop, weather=stage.weather, watch=stage.watch, trace=stage.trace
    )
    stage.tabs.append(tab)
    tab.press("up", down=True)
    return tab


async def another(stage: Stage, on: str, *, every: int = 0) -> str:
    """Open one more with a player; return its name once it is played. ``every``: 0, it is not protected."""

    async def begin(house: House) -> Any:
        return await house.desk.open(seed=house.ids.next_seed(), on=on, protect=every)

    name: str = (await stage.server.ask(begin)).name
    tab = Tab(name, server=stage.server, loop=stage.loop, weather=stage.weather, watch=stage.watch, trace=stage.trace)
    stage.tabs.append(tab)
    tab.press("up", down=True)
    await until(stage, lambda: stage.watch.played[name].next_block >= 4, "the other is played")
    return name


async def asked_again_and_again(stage: Stage, on: str) -> None:
    """Ask for more worlds there than there is room for."""
    async with asyncio.TaskGroup() as asked:
        while True:
            asked.create_task(refused(another(stage, on)))
            await asyncio.sleep(1.0)


async def refused(opening: Coroutine[Any, Any, str]) -> None:
    with pytest.raises(UserError):
        await opening


def shown(stage: Stage) -> int:
    return stage.watch.played[SESSION].next_block


def owner(stage: Stage) -> str:
    row = stage.watch.played[SESSION].row
    return "" if row is None or row.lost else row.owner


def kept(stage: Stage) -> tuple[str, int] | None:
    house = stage.server.house
    view = None if house is None else house.controller.sessions()[0]
    return None if view is None or view.keeper is None or view.kept_block is None else (view.keeper, view.kept_block)


def reports(stage: Stage) -> tuple[FailoverReport, ...]:
    assert stage.server.house is not None
    return stage.server.house.controller.failovers()


async def ended(stage: Stage, tab: Tab) -> None:
    stage.watch.is_ending = True
    await tab.end()
    await close(stage, SESSION)
    await until(stage, lambda: all_free(stage), "every slot is free")


def keeper_takes_room(stage: Stage) -> bool:
    house = stage.server.house
    views = () if house is None else house.controller.workers()
    return any(view.slots_free < 3 for view in views if view.name != "worker-1")


def all_free(stage: Stage) -> bool:
    house = stage.server.house
    return house is not None and all(view.slots_free == 3 for view in house.controller.workers())


async def protected(stage: Stage, *, every: int = 4) -> Tab:
    """Return once a session is open at worker-1, a snapshot of it is kept, and two more blocks were shown."""
    tab = await opened(stage, every=every)
    await until(stage, lambda: (kept(stage) or ("", 0))[1] >= every, "a second snapshot is kept")
    block = (kept(stage) or ("", 0))[1]
    await until(stage, lambda: shown(stage) >= block + 2, "more blocks are shown")
    return tab


async def goes_on(stage: Stage, blocks: int = 8) -> None:
    before = shown(stage)
    await until(stage, lambda: shown(stage) >= before + blocks, "it goes on")


def kill(stage: Stage, worker: str) -> None:
    stage.hosts.nodes[worker].kill()


def why_lost(stage: Stage) -> str:
    return stage.watch.played[SESSION].live.lost_why or ""


def test_a_session_goes_on_from_its_snapshot_when_its_owner_is_killed() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    stage = directed(course)
    (report,) = reports(stage)
    assert report.outcome is FailoverOutcome.RESUMED
    assert report.source == "worker-1" != report.destination
    assert report.num_compared == report.num_replayed > 0
    assert stage.trace.counts["lost"] == 0


def test_an_engine_that_never_returns_from_a_step_is_told_of_and_a_kill_of_its_worker_ends_that() -> None:
    """Its worker answers every beat: nobody is suspected, and nothing goes on by itself."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        assert stage.server.house is not None
        stalls, block = stage.server.house.gateway.stalls, shown(stage)
        stage.hosts.nodes["worker-1"].slow_down(2e3)
        await until(stage, lambda: stalls.stalled_s(SESSION) is not None, "it is called stalled")
        assert (owner(stage), kept(stage) is not None) == ("worker-1", True)
        assert stage.server.house.controller.sessions()[0].state is SessionState.LIVE
        assert shown(stage) <= block + 2
        kill(stage, "worker-1")
        await goes_on(stage)
        assert stalls.stalled_s(SESSION) is None
        await ended(stage, tab)

    (report,) = reports(directed(course))
    assert (report.outcome, report.source) == (FailoverOutcome.RESUMED, "worker-1")


def test_an_unprotected_session_is_lost_with_its_owner_and_said_to_be() -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) >= 6, "it is played")
        kill(stage, "worker-1")
        await until(stage, lambda: bool(why_lost(stage)), "it is said to be lost")
        await ended(stage, tab)

    stage = directed(course)
    assert why_lost(stage) == "worker-1 ended and no other worker holds a copy"


def test_a_session_that_has_failed_over_is_protected_again_and_outlives_its_next_owner_too() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        for _ in range(3):
            kill(stage, owner(stage))
            await goes_on(stage, 3)
            await until(stage, lambda: (kept(stage) or (owner(stage), 0))[0] != owner(stage), "it is kept elsewhere")
            await goes_on(stage, 5)
        await ended(stage, tab)

    stage = directed(course)
    assert [report.outcome for report in reports(stage)] == [FailoverOutcome.RESUMED] * 3


def test_a_keeper_that_is_killed_is_replaced_and_the_session_survives_its_owner_after_that() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, (kept(stage) or ("", 0))[0])
        await until(stage, lambda: kept(stage) is not None, "another worker keeps a snapshot")
        await goes_on(stage, 2)
        kill(stage, "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    assert len(reports(directed(course))) == 1


def test_where_owner_and_keeper_are_killed_it_is_lost_and_said_so() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        kill(stage, "worker-1")
        kill(stage, keeper)
        await until(stage, lambda: bool(why_lost(stage)), "it is said to be lost")
        await ended(stage, tab)

    stage = directed(course)
    assert why_lost(stage) == "worker-1 ended and no other worker holds a copy"
    assert reports(stage) == ()


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_session_outlives_its_owner_killed_at_any_time_of_a_move(after_s: float) -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        to = next(name for name in ("worker-2", "worker-3") if name != (kept(stage) or ("", 0))[0])
        moving = asyncio.ensure_future(stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False)))
        await asyncio.sleep(after_s)
        kill(stage, "worker-1")
        await moving
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_a_session_that_is_moved_to_its_keeper_outlives_that_worker_at_once(blocks: int) -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        to = (kept(stage) or ("", 0))[0]
        await stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False))
        assert owner(stage) == to
        await goes_on(stage, blocks)
        kill(stage, to)
        await goes_on(stage)
        await ended(stage, tab)

    stage = directed(course)
    assert stage.trace.counts["moves committed"] == 0  # it is the mover of other courses that counts them
    assert stage.trace.counts["lost"] == 0


def test_one_whose_keeper_plays_another_that_never_returns_is_kept_elsewhere_and_outlives_its_owner() -> None:
    """That engine could make no session of the snapshot, whoever asks it to."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        stuck = (kept(stage) or ("", 0))[0]
        assert stage.server.house is not None
        other = await another(stage, stuck)
        stage.hosts.nodes[stuck]._threads[0].slowness = 2e4
        stalls = stage.server.house.gateway.stalls
        await until(stage, lambda: stalls.stalled_s(other) is not None, "it is said to be stalled")
        await until(stage, lambda: (kept(stage) or (stuck, 0))[0] != stuck, "another keeps the first")
        kill(stage, "worker-1")
        await goes_on(stage)
        kill(stage, stuck)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 1  # that other one


@pytest.mark.parametrize(
    ("hangs_in", "thread"), [("its rehearsal", 0), ("its installing", 0), ("its poisoning", 2), ("its digests", 2)]
)
def test_one_whose_move_hangs_at_its_destination_outlives_its_owner_by_the_snapshot_of_a_third(
    hangs_in: str, thread: int
) -> None:
    """What a thread is at there holds a shadow for ever, which can be granted nothing."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        to = next(name for name in ("worker-2", "worker-3") if name != keeper)
        hung = stage.hosts.nodes[to]._threads[thread]
        if hangs_in in ("its rehearsal", "its poisoning"):
            hung.slowness = 2e4
        moving = asyncio.ensure_future(stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False)))
        await until(stage, lambda: holds(stage, to), "there is a shadow")
        hung.slowness = 2e4
        assert (await moving).outcome is not Outcome.COMMITTED
        kill(stage, "worker-1")
        await goes_on(stage)
        assert owner(stage) == keeper
        kill(stage, to)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_session_that_is_closed_while_its_keeper_pulls_gives_every_slot_back_at_once() -> None:
    """Its keeper lets it go without an answer, and may get on with others for ever: nobody waits for one."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        stage.weather.rates["path_stalls"] = 1.0
        block = (kept(stage) or ("", 0))[1]
        await until(stage, lambda: shown(stage) >= block + 6, "the next snapshot is on its way")
        assert not all_free(stage)
        stage.watch.is_ending = True
        await tab.end()
        await close(stage, SESSION)
        await until(stage, lambda: all_free(stage), "every slot is free", within_s=1.0)

    directed(course)


@pytest.mark.parametrize("others_ask", [False, True])
def test_an_opening_at_an_engine_that_never_returns_is_answered_though_others_are_there(*, others_ask: bool) -> None:
    """Bytes of others say nothing of an engine, nor does what is refused without it."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        stuck = (kept(stage) or ("", 0))[0]
        stage.hosts.nodes[stuck]._threads[0].slowness = 2e4
        begun = stage.loop.time()
        asking = asyncio.ensure_future(asked_again_and_again(stage, stuck)) if others_ask else None
        with pytest.raises(UserError, match=f"{stuck} has got nothing done for"):
            await another(stage, stuck)
        assert stage.loop.time() - begun < 3 * 5.0
        if asking is not None:
            asking.cancel()
        assert kept(stage) is not None
        kill(stage, stuck)
        await ended(stage, tab)

    directed(course)


def test_one_whose_retired_copy_is_where_another_never_returns_goes_on_from_its_snapshot_elsewhere() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage, every=64)
        keeper = (kept(stage) or ("", 0))[0]
        to = next(name for name in ("worker-2", "worker-3") if name != keeper)
        other = await another(stage, "worker-1")
        await stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False))
        stage.hosts.nodes["worker-1"]._threads[0].slowness = 2e4
        assert stage.server.house is not None
        stalls = stage.server.house.gateway.stalls
        await until(stage, lambda: stalls.stalled_s(other) is not None, "it is said to be stalled")
        assert holds(stage, "worker-1")
        kill(stage, to)
        await goes_on(stage)
        assert owner(stage) == keeper
        kill(stage, "worker-1")
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 1  # that other one


def test_a_server_that_is_started_again_goes_on_from_a_snapshot_where_the_owner_died_with_the_old_one() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        stage.server.kill()
        kill(stage, "worker-1")
        await asyncio.sleep(0.3)
        await stage.server.start()
        await goes_on(stage)
        assert owner(stage) != "worker-1"
        await goes_on(stage)
        kill(stage, owner(stage))  # and is protected still
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_worker_that_is_told_to_end_has_its_session_moved_away_first_and_nothing_is_replayed() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        leaving = stage.hosts.nodes["worker-1"]
        leaving.terminate()
        await until(stage, lambda: not leaving.has_power, "it ends")
        assert owner(stage) not in ("", "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    stage = directed(course)
    assert reports(stage) == ()
    assert stage.trace.counts["lost"] == 0


def test_a_keeper_that_is_told_to_end_waits_until_another_keeps_the_snapshot() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        leaving = stage.hosts.nodes[keeper]
        leaving.terminate()
        await until(stage, lambda: not leaving.has_power, "it ends")
        assert kept(stage) is not None
        kill(stage, "worker-1")
        await goes_on(stage)
        await ended(stage, tab)

    assert len(reports(directed(course))) == 1


def test_a_copy_that_replays_other_frames_than_were_shown_is_not_gone_on_from_and_the_reason_is_said() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, "worker-1")
        await until(stage, lambda: bool(why_lost(stage)), "it is said to be lost")
        await ended(stage, tab)

    stage = directed(course, forgets="cursor", error="replayed differently")
    (report,) = reports(stage)
    assert report.outcome is FailoverOutcome.DIVERGED
    assert f"it has replayed block {report.differs_at} differently than it was shown" in why_lost(stage)


async def granted(stage: Stage) -> FailoverReport:
    """Kill the owner of a protected session, and return once its keeper's copy has it: no block of it is shown yet."""
    kill(stage, "worker-1")
    await until(stage, lambda: bool(reports(stage)), "its keeper's copy has it")
    (report,) = reports(stage)
    assert report.outcome is FailoverOutcome.REPLAYS
    return report


def test_a_failover_whose_copy_dies_before_it_has_shown_a_block_is_told_as_ended_with_the_session() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, (await granted(stage)).destination)
        await until(stage, lambda: bool(why_lost(stage)), "it is said to be lost")
        (report,) = reports(stage)
        assert (report.outcome, report.why) == (
            FailoverOutcome.ENDED,
            "it stopped too, and nobody has a copy that could go on",
        )
        await ended(stage, tab)

    assert directed(course).trace.counts["failovers ended"] == 1


def test_a_failover_whose_session_is_closed_before_it_has_shown_a_block_is_told_as_ended() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        node = stage.hosts.nodes[(await granted(stage)).destination]
        node.slow_down(50.0)
        await ended(stage, tab)
        (report,) = reports(stage)
        assert (report.outcome, report.why) == (FailoverOutcome.ENDED, "the world was closed")

    assert directed(course).trace.counts["failovers ended"] == 1


async def owner_dies_as_its_first_snapshot_is_pulled(stage: Stage) -> Tab:
    stage.weather.rates["path_stalls"] = 1.0
    tab = await opened(stage)
    await until(stage, lambda: keeper_takes_room(stage), "a keeper pulls")
    await asyncio.sleep(CONNECT_S[1])  # what it is connected to, it can read when the owner is dead
    kill(stage, "worker-1")
    return tab


def test_a_session_whose_owner_dies_while_its_first_snapshot_is_on_its_way_waits_for_it_and_goes_on() -> None:
    async def course(stage: Stage) -> None:
        tab = await owner_dies_as_its_first_snapshot_is_pulled(stage)
        await goes_on(stage)
        stage.weather.rates["path_stalls"] = 0.0
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_nothing_that_others_keep_is_let_go_for_a_snapshot_of_who_plays_the_session_by_now() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        to = next(name for name in ("worker-2", "worker-3") if name != keeper)
        stage.loop.pause(stage.hosts.nodes[keeper].node)
        stage.weather.rates["path_stalls"] = 1.0
        await until(stage, lambda: has_taken(stage, to), "another one is asked, and pulls")
        await asyncio.sleep(CONNECT_S[1])
        stage.weather.rates["path_stalls"] = 0.0
        stage.loop.resume(stage.hosts.nodes[keeper].node)
        await stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False))
        assert owner(stage) == to
        kill(stage, "worker-1")
        await asyncio.sleep(0.05)
        assert not keeps(stage, to)  # what it was to keep is given up: it comes no more
        kill(stage, to)
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_keeper_that_hears_late_to_let_go_for_one_that_is_dead_by_then_keeps_its_snapshot() -> None:
    """It sleeps with that word in its socket."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        other = next(name for name in ("worker-2", "worker-3") if name != keeper)
        stage.loop.pause(stage.hosts.nodes[keeper].node)
        told = said_to(stage, keeper, LetGo)
        await until(stage, lambda: bool(told), "it is told to let go for another one's")
        assert (kept(stage) or ("", 0))[0] == other
        stage.weather.rates["path_stalls"] = 1.0  # nobody comes to keep another meanwhile
        kill(stage, other)
        await asyncio.sleep(1.2 * FleetConfig().let_go_s)
        stage.loop.resume(stage.hosts.nodes[keeper].node)
        await asyncio.sleep(0.5)
        stage.weather.rates["path_stalls"] = 0.0
        kill(stage, "worker-1")
        await goes_on(stage)
        assert owner(stage) == keeper
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def said_to(stage: Stage, worker: str, kind: type[Any]) -> list[Any]:
    """Return a list of what a worker is told of a kind from now on."""
    told: list[Any] = []
    link = stage.hosts.nodes[worker].link
    send = link.send

    def heard(message: Any) -> None:
        if isinstance(message, kind):
            told.append(message)
        send(message)

    link.send = heard  # type: ignore[method-assign]
    return told


def has_taken(stage: Stage, worker: str) -> bool:
    house = stage.server.house
    return house is not None and any(v.slots_free < 3 for v in house.controller.workers() if v.name == worker)


def test_a_session_that_is_lost_while_its_snapshot_is_on_its_way_takes_no_room_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A keeper that takes longer than it may is not waited for, and what it has proven after that is not kept."""
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, snapshot_s=1.0))

    async def course(stage: Stage) -> None:
        tab = await owner_dies_as_its_first_snapshot_is_pulled(stage)
        await until(stage, lambda: bool(why_lost(stage)), "the player is told")
        assert keeper_takes_room(stage)
        await until(stage, lambda: all_free(stage), "every slot is free")
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 1


def test_a_snapshot_that_nothing_can_replace_is_let_go_before_it_is_too_old_to_be_gone_on_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its keeper has one slot left, and that is where it lies."""
    monkeypatch.setattr(inputs, "MAX_LISTS", 30)
    monkeypatch.setattr(inputs, "MOST_LISTS", 60)

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        old = (kept(stage) or ("", 0))[1]
        others = await stage.server.ask(fill)
        await until(stage, lambda: (kept(stage) or ("", 0))[1] > old + 30, "there is a new one", within_s=60.0)
        kill(stage, "worker-1")
        await goes_on(stage)
        stage.watch.is_ending = True
        for other in others:
            await close(stage, other)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_keeper_that_has_no_room_any_more_is_replaced_by_one_that_has() -> None:
    """A newer snapshot lies beside the older one for a moment, so it is kept where there is room for that."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        full, old = kept(stage) or ("", 0)
        filled = await stage.server.ask(lambda house: fill(house, full))
        await until(stage, lambda: (kept(stage) or ("", 0))[1] >= old + 12, "it is renewed as before")
        keeper, block = kept(stage) or ("", 0)
        assert (keeper not in ("worker-1", full), block <= old + 20, holds(stage, full)) == (True, True, False)
        kill(stage, "worker-1")
        await goes_on(stage)
        stage.watch.is_ending = True
        for name in filled:
            await close(stage, name)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


async def fill(house: House, *workers: str) -> list[str]:
    """Take every slot that is free at some workers: those which do not play the session, if none is named."""
    names = []
    for worker in workers or ("worker-2", "worker-3"):
        while next(view for view in house.controller.workers() if view.name == worker).slots_free:
            names.append((await house.desk.open(seed=house.ids.next_seed(), on=worker)).name)
            await asyncio.sleep(0.05)
    return names


@pytest.mark.parametrize("strategy", [Strategy.REPLAY, Strategy.PRE_COPY])
def test_an_owner_that_hangs_while_its_session_is_made_ready_elsewhere_is_replaced_as_soon_as_any(
    monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    """What comes before the boundary may take a minute: nobody waits for that."""
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, patience_s=40.0))
    told: list[MoveReport] = []

    async def course(stage: Stage) -> None:
        stage.weather.rates["path_stalls"] = 0.0
        tab = await protected(stage)
        stage.weather.rates["path_stalls"] = 1.0
        to = next(name for name in ("worker-2", "worker-3") if name != (kept(stage) or ("", 0))[0])
        asked = stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False, strategy=strategy.value))
        moving = asyncio.ensure_future(asked)
        await until(stage, lambda: holds(stage, to), "its destination has a slot for it")
        await asyncio.sleep(0.1)
        hangs = stage.hosts.nodes["worker-1"].node
        stage.loop.pause(hangs)
        begun, block = stage.loop.time(), shown(stage)
        await until(stage, lambda: shown(stage) > block + 2, "it goes on")
        assert stage.loop.time() - begun < 8.0
        told.append(await moving)
        stage.loop.resume(hangs)
        stage.weather.rates["path_stalls"] = 0.0
        await goes_on(stage)
        await ended(stage, tab)

    directed(course)
    assert (told[0].outcome, told[0].reason) == (Outcome.ABORTED, "silent")
    assert told[0].detail == "worker-1 does not answer, and the move was closed"


def phases(stage: Stage, worker: str) -> list[str]:
    """Return what a worker holds of the session, as it has reported."""
    house = stage.server.house
    views = () if house is None else house.controller.workers()
    return [copy.phase for view in views if view.name == worker for copy in view.copies if copy.session == SESSION]


def holds(stage: Stage, worker: str) -> bool:
    return bool(phases(stage, worker))


def keeps(stage: Stage, worker: str) -> bool:
    """Whether it keeps a snapshot; also who plays it by now, of which the session's listing says nothing."""
    return KEPT in phases(stage, worker)


def test_a_keeper_that_does_not_hear_that_a_session_is_protected_no_more_gives_its_slot_back_when_it_does() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        stage.hosts.nodes[(kept(stage) or ("", 0))[0]].cut(1.0)
        await asyncio.sleep(0.1)
        await unprotected(stage)
        await until(stage, lambda: num_taken(stage) == 1, "only the owner has a slot")
        await ended(stage, tab)

    directed(course)


@pytest.mark.parametrize("beats", [2.1, 2.5, 3.1, 4.0])
@pytest.mark.parametrize("lease_s", [1.25, 5.0])
def test_what_a_keeper_has_let_go_is_counted_no_more_though_it_hears_of_that_late_and_of_beats_with_it(
    beats: float, lease_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word and the beats after it have waited in a socket together: what is said is looked at after each answer."""
    believed: list[tuple[str, float]] = []
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, worker_lease_s=lease_s))

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        keeper = (kept(stage) or ("", 0))[0]
        (other,) = {"worker-2", "worker-3"} - {keeper}
        filled = await stage.server.ask(lambda house: fill(house, other))  # so it is the same one that is asked again
        node = stage.hosts.nodes[keeper]
        hear = node._on_message

        def heard(message: Any) -> None:
            hear(message)
            if is_protected(stage) and node.kept_block(SESSION) is None:
                believed.append((type(message).__name__, stage.loop.time()))

        node._on_message = heard
        node.stall(beats * run.FLEET.beat_s, up=False)
        told = said_to(stage, keeper, LetGo)
        await unprotected(stage)
        await until(stage, lambda: bool(told), "it is told to let go")
        await protected_again(stage)
        assert not is_protected(stage)
        await until(stage, lambda: is_protected(stage), "it is protected again")
        stage.watch.is_ending = True
        for name in filled:
            await close(stage, name)
        await ended(stage, tab)

    directed(course)
    assert not believed


def test_a_session_that_is_protected_no_more_while_nobody_plays_it_goes_on_from_what_is_kept() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, "worker-1")
        await until(stage, stage.hosts.nodes["worker-1"].status.done, "the server knows")
        await unprotected(stage)
        await goes_on(stage)
        await until(stage, lambda: num_taken(stage) == 1, "only the owner has a slot")
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_of_sessions_that_have_ended_nothing_is_left_of_what_has_guarded_them() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        kill(stage, "worker-1")
        await goes_on(stage)
        await ended(stage, tab)
        assert stage.server.house is not None
        controller = stage.server.house.controller
        await asyncio.sleep(2.0)
        guards, recovering = controller._protection._guards, controller._caretaker._recovering
        assert (guards, recovering, controller._protection._changed) == ({}, {}, {})

    directed(course)


async def unprotected(stage: Stage) -> None:
    async def unprotect(house: House) -> None:
        house.desk.protect(SESSION, 0)

    stage.watch.protection_asked(SESSION, 0)
    await stage.server.ask(unprotect)


async def protected_again(stage: Stage, every: int = 4) -> None:
    async def protect(house: House) -> None:
        house.desk.protect(SESSION, every)

    stage.watch.protection_asked(SESSION, every)
    await stage.server.ask(protect)


def is_protected(stage: Stage) -> bool:
    house = stage.server.house
    return house is not None and not house.controller.sessions()[0].unprotected_why


def num_taken(stage: Stage) -> int:
    assert stage.server.house is not None
    return sum(3 - view.slots_free for view in stage.server.house.controller.workers())


def test_a_session_that_is_protected_no_more_takes_no_room_elsewhere() -> None:
    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        await unprotected(stage)
        await until(stage, lambda: num_taken(stage) == 1, "only the owner has a slot")
        await goes_on(stage)
        assert kept(stage) is None
        await ended(stage, tab)

    directed(course)


@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_a_session_that_is_protected_no_more_while_it_moves_takes_no_room_where_it_was(after_s: float) -> None:
    """The word that its copy is to stay may be heeded after the one that lets it pass: it had not retired by then."""

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        to = "worker-3" if (kept(stage) or ("", 0))[0] == "worker-2" else "worker-2"
        moving = asyncio.ensure_future(stage.server.ask(lambda house: house.desk.move(SESSION, to, damage=False)))
        await asyncio.sleep(after_s)
        await unprotected(stage)
        assert (await moving).outcome is Outcome.COMMITTED
        await until(stage, lambda: num_taken(stage) == 1, "only the owner has a slot")
        await ended(stage, tab)

    directed(course)
