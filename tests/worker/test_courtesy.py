"""When a spare block may begin."""

import asyncio

from tests.move import virtual
from worldmove.worker.courtesy import Courtesy

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


def test_blocks_whose_length_is_known_begin_as_long_as_they_are_over_before_the_next_list() -> None:
    async def run() -> list[bool]:
        courtesy = Courtesy(PERIOD_S)
        courtesy.owner_began("s-1")
        in_hand = await permitted(courtesy, 0.001, takes_s=0.01)
        await asyncio.sleep(0.3 * PERIOD_S)
        courtesy.owner_ended("s-1")
        found = [in_hand]
        for _ in range(3):  # 0.7 of the period are left: two blocks of 0.3 fit, and no third
            found.append(await permitted(courtesy, 0.001, takes_s=0.3 * PERIOD_S))
            await asyncio.sleep(0.3 * PERIOD_S)
        return found

    assert virtual.run(run()) == [False, True, True, False]


def test_the_first_list_of_several_worlds_counts_and_none_where_all_rest() -> None:
    async def run() -> tuple[bool, bool]:
        courtesy = Courtesy(PERIOD_S)
        for session in ("s-1", "s-2"):
            courtesy.owner_began(session)
            courtesy.owner_ended(session)
            await asyncio.sleep(0.5 * PERIOD_S)
        early = await permitted(courtesy, 0.001, takes_s=0.1 * PERIOD_S)  # the list of s-1 is due now
        return early, await permitted(courtesy, 2 * PERIOD_S, takes_s=5 * PERIOD_S)

    assert virtual.run(run()) == (False, True)


def test_a_block_that_fits_nowhere_never_begins_while_somebody_plays() -> None:
    async def run() -> bool:
        courtesy = Courtesy(PERIOD_S)
        waiting = asyncio.create_task(permitted(courtesy, 10 * PERIOD_S, takes_s=0.8 * PERIOD_S))
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
