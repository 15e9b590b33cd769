"""What a follower gets beside the worlds that are played, foretold and as the turns of an engine come to be."""

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.move import virtual
from tests.move.measuring import FAST
from worldmove.fleet.pace import Load
from worldmove.move.admission import Verdict, admit
from worldmove.move.strategy import Strategy
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.leeway import MARGIN, unused_s
from worldmove.worker.turns import Turn, Turns

PERIOD_S = 0.48
PATIENCE_S = 60.0


def foretold(phases: list[float], block_s: float, snapshot_s: float) -> Verdict:
    """Judge a replay whose snapshot is so long on its way, to a worker with worlds of these phases of a period."""
    load = Load(
        period_s=PERIOD_S, block_s=block_s, own=len(phases), ages_s=tuple((1 - phase) * PERIOD_S for phase in phases)
    )
    measured = replace(
        FAST,
        path_rate=FAST.num_bytes / snapshot_s,
        period_s=PERIOD_S,
        block_s=block_s,
        utilisation=load.taken(block_s),
        patience_s=PATIENCE_S,
    )
    return admit(measured, Strategy.REPLAY)


async def caught_up(phases: list[float], block_s: float, lag_s: float, within_s: float) -> tuple[float | None, int]:
    """Play worlds and follow another one; return how long it took to draw level, and how many blocks were late."""
    loop = asyncio.get_running_loop()
    courtesy, turns, late, begun = Courtesy(PERIOD_S), Turns(_thread), 0, loop.time()
    takes_s = MARGIN * block_s

    async def world(name: str, phase: float) -> None:
        nonlocal late
        list_at = begun + phase * PERIOD_S
        while True:
            await asyncio.sleep(max(0.0, list_at - loop.time()))
            courtesy.owner_began(name)
            async with turns.take(Turn.OWNER):
                await asyncio.sleep(block_s)
                courtesy.owner_ended(name)
            late += loop.time() > list_at + PERIOD_S + 1e-9
            list_at += PERIOD_S

    async def follower() -> float:
        await asyncio.sleep(3.3 * PERIOD_S)
        begins, stepped = loop.time(), 0
        while stepped < int((lag_s + loop.time() - begins) / PERIOD_S + 1e-9):
            await courtesy.permission(unless=lambda: False, takes_s=takes_s)
            async with turns.take(Turn.SPARE):
                if courtesy.allows(takes_s):
                    await asyncio.sleep(block_s)
                    stepped += 1
        return loop.time() - begins

    playing = [asyncio.create_task(world(f"s-{number}", phase)) for number, phase in enumerate(phases)]
    try:
        async with asyncio.timeout(within_s):
            return await follower(), late
    except TimeoutError:
        return None, late
    finally:
        for each in playing:
            each.cancel()


async def _thread(function):  # type: ignore[no-untyped-def]
    return function()


@pytest.mark.parametrize(
    ("phases", "block_s", "snapshot_s"),
    [
        ([], 0.2, 22.0),
        ([0.1], 0.158, 22.0),
        ([0.1], 0.2, 22.0),
        ([0.0, 0.4], 0.155, 2.2),
        ([0.0, 0.4], 0.158, 2.2),
        ([0.3, 0.3], 0.145, 10.0),
        ([0.0, 0.2, 0.5], 0.115, 5.0),
    ],
)
def test_a_follower_draws_level_in_about_the_time_that_admission_expects(
    phases: list[float], block_s: float, snapshot_s: float
) -> None:
    verdict = foretold(phases, block_s, snapshot_s)
    terms = {term.name: term.seconds for term in verdict.before}
    lag_s = sum(terms[name] for name in ("aside", "snapshot", "check", "turn"))
    took_s, late = virtual.run(caught_up(phases, block_s, lag_s, 200.0))
    assert late == 0
    assert took_s is not None
    assert took_s / 1.1 - PERIOD_S <= terms["catch up"] <= 1.3 * took_s + PERIOD_S


@pytest.mark.parametrize("phases", [[0.3, 0.3], [0.3, 0.33]])
def test_where_lists_come_at_once_one_that_could_catch_up_by_the_sum_of_all_blocks_never_does_and_is_rejected(
    phases: list[float],
) -> None:
    assert PERIOD_S / 3 > 0.158
    assert virtual.run(caught_up(phases, 0.158, 1.0, PATIENCE_S)) == (None, 0)
    verdict = foretold(phases, 0.158, 1.0)
    assert verdict.reason == "falls_behind"
    assert "a block takes 158 ms there, and its own worlds leave 158 ms for another one in the 480 ms" in verdict.detail


@settings(max_examples=25, deadline=None)
@given(
    phases=st.lists(st.integers(0, 99), max_size=3),
    load=st.integers(40, 99),
    snapshot_s=st.sampled_from([0.3, 2.0, 9.0]),
)
def test_whoever_is_admitted_draws_level_in_time_and_makes_nobody_late(
    phases: list[int], load: int, snapshot_s: float
) -> None:
    """``load``: percent of a period that all blocks take, the follower's one a period included."""
    places, block_s = [phase / 100 for phase in phases], load / 100 / (len(phases) + 1) * PERIOD_S
    verdict = foretold(places, block_s, snapshot_s)
    if not verdict.admitted:
        return
    expected_s = next(term.seconds for term in verdict.before if term.name == "catch up")
    took_s, late = virtual.run(caught_up(places, block_s, verdict.before_s - PERIOD_S - expected_s, PATIENCE_S))
    assert late == 0
    assert took_s is not None
    assert took_s <= 1.1 * expected_s + PERIOD_S


@pytest.mark.parametrize(("phases", "block_s"), [([0.26], 0.2376), ([0.34], 0.2328), ([0.26, 0.19, 0.21], 0.1188)])
def test_one_that_goes_well_until_a_block_does_not_fit_in_and_never_from_then_on_is_rejected(
    phases: list[float], block_s: float
) -> None:
    """Beside one world: one block a period, and 5 ms that nothing fits into. That is where every beginning ends."""
    assert virtual.run(caught_up(phases, block_s, 1.0, PATIENCE_S)) == (None, 0)
    assert not foretold(phases, block_s, 0.3).admitted


@given(phases=st.lists(st.integers(0, 99), min_size=1, max_size=3), load=st.integers(10, 100))
def test_nothing_goes_by_unused_where_all_blocks_fit_into_a_period_with_their_margin(
    phases: list[int], load: int
) -> None:
    block_s = load / 100 / (len(phases) + 1) / MARGIN * PERIOD_S * 0.999
    ages = [phase / 100 * PERIOD_S for phase in phases]
    assert unused_s(ages, period_s=PERIOD_S, block_s=block_s, takes_s=MARGIN * block_s) == 0


@given(phases=st.lists(st.integers(0, 99), max_size=4), load=st.integers(10, 120), one_more=st.integers(0, 99))
def test_one_world_more_never_leaves_a_follower_more_time(phases: list[int], load: int, one_more: int) -> None:
    block_s = load / 100 / (len(phases) + 2) * PERIOD_S
    few, many = (
        Load(period_s=PERIOD_S, block_s=block_s, own=len(of), ages_s=tuple(phase / 100 * PERIOD_S for phase in of))
        for of in (phases, [*phases, one_more])
    )
    assert many.taken(block_s) >= few.taken(block_s) - 1e-9


def test_of_a_worker_where_nobody_plays_nothing_goes_by() -> None:
    assert unused_s((), period_s=PERIOD_S, block_s=0.2, takes_s=0.22) == 0
    assert unused_s((0.1,), period_s=0.0, block_s=0.2, takes_s=0.22) == 0


@pytest.mark.parametrize("num_worlds", [1, 16, 64])
@pytest.mark.parametrize("period_s", [0.04, 0.48, 1000.0])
def test_what_goes_by_is_known_at_once_however_short_blocks_are_and_however_many_worlds(
    num_worlds: int, period_s: float
) -> None:
    """Whoever plans a move waits for it, and everybody whose frames go by that loop."""
    ages = [period_s * number / num_worlds for number in range(num_worlds)]
    for load in (0.001, 0.5, 0.97):
        block_s = load * period_s / (num_worlds + 1)
        begun = time.process_time()
        assert unused_s(ages, period_s=period_s, block_s=block_s, takes_s=MARGIN * block_s) >= 0
        assert time.process_time() - begun < 2.0
