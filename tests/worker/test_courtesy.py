"""When a spare block may begin."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.move import virtual
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.leeway import MARGIN

PERIOD_S = 0.1


async def permitted(courtesy: Courtesy, within_s: float, takes_s: float | None = None) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await courtesy.permission(unless=lambda: False, takes_s=takes_s)
    except TimeoutError:
        return False
    return True


def test_where_nobody_plays_a_spare_block_begins_at_once() -> None:
    async def run() -> bool:
        return await permitted(Courtesy(PERIOD_S), 0.001)

    assert virtual.run(run())


def test_between_an_owners_blocks_it_waits_for_the_end_of_one() -> None:
    async def run() -> tuple[bool, bool, bool]:
        courtesy = Courtesy(PERIOD_S)
        courtesy.owner_ended()
        fresh = await permitted(courtesy, 0.001)
        await asyncio.sleep(0.3 * PERIOD_S)
        early = await permitted(courtesy, 0.2 * PERIOD_S)
        asyncio.get_running_loop().call_later(0.1 * PERIOD_S, courtesy.owner_ended)
        return fresh, early, await permitted(courtesy, 0.5 * PERIOD_S)

    assert virtual.run(run()) == (True, False, True)


def test_after_an_owner_rests_it_begins() -> None:
    async def run() -> bool:
        courtesy = Courtesy(PERIOD_S)
        courtesy.owner_ended()
        await asyncio.sleep(0.5 * PERIOD_S)
        return await permitted(courtesy, 2 * PERIOD_S)

    assert virtual.run(run())


def test_while_a_shadow_waits_for_its_session_none_begins() -> None:
    async def run() -> tuple[bool, bool]:
        courtesy = Courtesy(PERIOD_S)
        courtesy.hold_back()
        held = await permitted(courtesy, 3 * PERIOD_S)
        courtesy.let_go_on()
        return held, await permitted(courtesy, 0.001)

    assert virtual.run(run()) == (False, True)


def test_whoever_has_nothing_to_step_any_more_is_let_go() -> None:
    async def run() -> bool:
        courtesy, over = Courtesy(PERIOD_S), [False]
        courtesy.hold_back()
        waiting = asyncio.create_task(courtesy.permission(unless=lambda: over[0]))
        await asyncio.sleep(0)
        over[0] = True
        courtesy.look_again()
        await asyncio.wait_for(waiting, 1)
        return waiting.done()

    assert virtual.run(run())


def test_blocks_whose_length_is_known_begin_though_the_next_list_comes_before_they_are_over() -> None:
    async def run() -> list[bool]:
        courtesy = Courtesy(PERIOD_S)
        courtesy.owner_began("s-1")
        found = [await permitted(courtesy, 0.001, takes_s=0.01)]  # a block is in hand
        await asyncio.sleep(0.3 * PERIOD_S)
        courtesy.owner_ended("s-1")
        for takes in (0.3, 0.49, 0.85):  # after 0.85 of a period, the owner's block would be over 0.15 of one too late
            found.append(await permitted(courtesy, 0.001, takes_s=takes * PERIOD_S))
        return found

    assert virtual.run(run()) == [False, True, True, False]


def test_where_all_rest_it_may_take_as_long_as_it_likes() -> None:
    async def run() -> tuple[bool, bool]:
        courtesy = Courtesy(PERIOD_S)
        for session in ("s-1", "s-2"):
            courtesy.owner_began(session)
            courtesy.owner_ended(session)
            await asyncio.sleep(0.5 * PERIOD_S)
        early = await permitted(courtesy, 0.001, takes_s=0.6 * PERIOD_S)  # two lists come within this time
        return early, await permitted(courtesy, 2 * PERIOD_S, takes_s=5 * PERIOD_S)

    assert virtual.run(run()) == (False, True)


@given(
    phases=st.lists(st.integers(0, 99), min_size=1, max_size=3),
    load=st.integers(30, 96),
)
@settings(max_examples=30, deadline=None)
def test_beside_worlds_of_any_phases_a_follower_makes_none_late_and_has_the_time_that_they_leave(
    phases: list[int], load: int
) -> None:
    """``load``: percent of a period that all blocks take, the follower's one a period included."""
    block_s = load / 100 / (len(phases) + 1) / MARGIN * PERIOD_S
    late, stepped = virtual.run(_beside([phase / 100 * PERIOD_S for phase in phases], block_s))
    assert late == 0
    assert stepped >= PERIODS - 2


PERIODS = 20


async def _beside(phases: list[float], block_s: float) -> tuple[int, int]:
    """Play worlds and a follower on one engine; return how many blocks were late, and how many the follower made."""
    courtesy, engine, loop = Courtesy(PERIOD_S), asyncio.Lock(), asyncio.get_running_loop()
    begun, late, stepped = loop.time(), 0, 0

    async def world(name: str, phase: float) -> None:
        nonlocal late
        for number in range(PERIODS):
            list_at = begun + phase + number * PERIOD_S
            await asyncio.sleep(max(0.0, list_at - loop.time()))
            courtesy.owner_began(name)
            async with engine:
                await asyncio.sleep(block_s)
            courtesy.owner_ended(name)
            late += loop.time() > list_at + PERIOD_S + 1e-9

    async def follower() -> None:
        nonlocal stepped
        while True:
            await courtesy.permission(unless=lambda: False, takes_s=MARGIN * block_s)
            async with engine:
                await asyncio.sleep(block_s)
            stepped += 1

    follows = asyncio.create_task(follower())
    await asyncio.gather(*(world(f"s-{number}", phase) for number, phase in enumerate(phases)))
    follows.cancel()
    await asyncio.gather(follows, return_exceptions=True)
    return late, stepped


def test_a_block_that_fits_nowhere_never_begins_while_somebody_plays() -> None:
    async def run() -> bool:
        courtesy = Courtesy(PERIOD_S)
        waiting = asyncio.create_task(permitted(courtesy, 10 * PERIOD_S, takes_s=0.9 * PERIOD_S))
        for _ in range(8):
            courtesy.owner_began("s-1")
            await asyncio.sleep(0.3 * PERIOD_S)
            courtesy.owner_ended("s-1")
            await asyncio.sleep(0.7 * PERIOD_S)
        begun = waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return begun

    assert not virtual.run(run())


def test_what_the_same_player_waits_for_is_not_held_back_by_its_own_shadow_and_by_any_other_is() -> None:
    async def run() -> list[bool]:
        courtesy = Courtesy(PERIOD_S)
        courtesy.hold_back()
        own = courtesy.allows(0.2 * PERIOD_S, own_holds=1)
        courtesy.owner_began("s-1")
        late = courtesy.allows(0.2 * PERIOD_S, own_holds=1)
        courtesy.owner_ended("s-1")
        courtesy.hold_back()
        return [own, late, courtesy.allows(0.2 * PERIOD_S, own_holds=1)]

    assert virtual.run(run()) == [True, False, False]
