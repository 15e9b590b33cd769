"""When a spare block may begin."""

import asyncio

from tests.move import virtual
from worldmove.worker.courtesy import Courtesy

PERIOD_S = 0.1


async def permitted(courtesy: Courtesy, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await courtesy.permission(unless=lambda: False)
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
        courtesy.shadow_reserved()
        held = await permitted(courtesy, 3 * PERIOD_S)
        courtesy.shadow_ended()
        return held, await permitted(courtesy, 0.001)

    assert virtual.run(run()) == (False, True)


def test_whoever_has_nothing_to_step_any_more_is_let_go() -> None:
    async def run() -> bool:
        courtesy, over = Courtesy(PERIOD_S), [False]
        courtesy.shadow_reserved()
        waiting = asyncio.create_task(courtesy.permission(unless=lambda: over[0]))
        await asyncio.sleep(0)
        over[0] = True
        courtesy.look_again()
        await asyncio.wait_for(waiting, 1)
        return waiting.done()

    assert virtual.run(run())
