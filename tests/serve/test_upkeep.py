"""What nobody watches is closed after a time in which somebody could have come back, and no other time counts."""

import asyncio

import pytest

from tests.serve.test_gateway import House, in_house
from worldmove.serve.upkeep import Upkeep

EVERY_S, SPARE_S, KEEP_S, FOR_EVER_S = 0.5, 30.0, 600.0, 1e9


async def attended(upkeep: Upkeep, seconds: float) -> None:
    """Have the server look as it does, for so long."""
    for _ in range(int(seconds / EVERY_S)):
        await asyncio.sleep(EVERY_S)
        upkeep.look(EVERY_S)


@pytest.mark.parametrize("asks_first", [False, True])
def test_time_in_which_the_server_itself_did_not_run_closes_no_world(*, asks_first: bool) -> None:
    """It was stopped, say: nobody could come back to a world meanwhile, and a page that is open tries to."""

    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        upkeep = Upkeep(house.gateway, keep_s=KEEP_S, spare_s=SPARE_S, silent_s=10.0)
        await attended(upkeep, 1.0)
        await asyncio.sleep(2 * KEEP_S)
        if asks_first:  # for a new world, before it has looked at anything
            assert not await upkeep.make_room({"a"})
        upkeep.look(EVERY_S)
        await asyncio.sleep(0.1)
        assert not await upkeep.make_room({"a"})
        assert session in house.gateway.lives
        await attended(upkeep, SPARE_S)
        assert await upkeep.make_room({"a"})
        assert session not in house.gateway.lives

    in_house(work, keep_s=FOR_EVER_S, spare_s=FOR_EVER_S)


def test_a_world_that_nobody_has_watched_for_all_of_that_time_is_closed() -> None:
    async def work(house: House) -> None:
        session = (await house.desk.open(seed=7, on=None)).name
        upkeep = Upkeep(house.gateway, keep_s=KEEP_S, spare_s=SPARE_S, silent_s=10.0)
        await attended(upkeep, KEEP_S - 1.0)
        assert session in house.gateway.lives
        await attended(upkeep, 3.0)
        assert session not in house.gateway.lives

    in_house(work, keep_s=FOR_EVER_S, spare_s=FOR_EVER_S)
