"""Blocks whose pictures were sent and have not left yet."""

import asyncio

from tests.move import virtual
from worldmove.worker.on_their_way import OnTheirWay


async def none(travelling: OnTheirWay) -> bool:
    try:
        async with asyncio.timeout(1.0):
            await travelling.none()
    except TimeoutError:
        return False
    return True


def test_there_are_none_once_the_newest_of_every_session_has_left() -> None:
    async def run() -> list[bool]:
        travelling = OnTheirWay()
        found = [await none(travelling)]
        travelling.sent("s-1", 3)
        travelling.sent("s-2", 7)
        travelling.left("s-2", 7)
        found.append(await none(travelling))
        travelling.sent("s-1", 4)
        travelling.left("s-1", 3)
        found.append(await none(travelling))
        travelling.left("s-1", 4)
        found.append(await none(travelling))
        return found

    assert virtual.run(run()) == [True, False, False, True]


def test_a_session_that_has_gone_is_not_waited_for_nor_one_that_was_never_sent() -> None:
    async def run() -> bool:
        travelling = OnTheirWay()
        travelling.left("s-9", 1)
        travelling.sent("s-1", 3)
        travelling.forget("s-1")
        travelling.forget("s-1")
        return await none(travelling)

    assert virtual.run(run())
