"""What clients together may take of the loop: no more than the share, whoever has taken least first."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from worldmove.serve.allowance import Pace
from worldmove.serve.loop_share import CREDIT_S, LoopShare, Measured, Party

TENTH = Pace(burst=0.01, per_s=0.1)


def on_share(pace: Pace, story: Callable[[LoopShare, list[None]], Awaitable[None]]) -> None:
    async def told() -> None:
        waited: list[None] = []
        async with asyncio.timeout(20):
            await story(LoopShare(pace, lambda: waited.append(None)), waited)

    asyncio.run(told())


def test_who_asks_while_nothing_is_owed_goes_on_at_once() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        for _ in range(100):
            await share.turn(Party())
        assert not waited

    on_share(TENTH, story)


def test_all_together_take_no_more_than_their_share_however_many_they_are() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        taken_s = 0.0

        async def flood() -> None:
            nonlocal taken_s
            party = Party()
            while True:
                await share.turn(party)
                share.owe(party, 0.004)
                taken_s += 0.004

        floods = [asyncio.create_task(flood()) for _ in range(50)]
        begun = time.monotonic()
        await asyncio.sleep(1.0)
        assert 0.05 < taken_s <= TENTH.burst + TENTH.per_s * (time.monotonic() - begun) + 0.004
        assert waited
        for task in floods:
            task.cancel()

    on_share(TENTH, story)


@pytest.mark.parametrize("before", [0, 3], ids=["new", "asked before"])
def test_who_has_asked_for_little_is_next_whoever_floods(before: int) -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        num_answered = 0

        async def flood() -> None:
            nonlocal num_answered
            party = Party()
            while True:
                await share.turn(party)
                share.owe(party, CREDIT_S)
                num_answered += 1

        async def ask_for_little(party: Party) -> None:
            await share.turn(party)
            share.owe(party, CREDIT_S / 20)

        modest = Party()
        for _ in range(before):
            await ask_for_little(modest)
        floods = [asyncio.create_task(flood()) for _ in range(200)]
        await asyncio.sleep(1.0)
        for _ in range(8):
            answered_before = num_answered
            await ask_for_little(modest)
            assert num_answered - answered_before <= 3
            await asyncio.sleep(0.02)
        assert num_answered > 200
        for task in floods:
            task.cancel()

    on_share(Pace(burst=CREDIT_S, per_s=500 * CREDIT_S), story)


def test_those_who_flood_alike_are_answered_alike() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        answered = [0] * 10

        async def flood(number: int) -> None:
            party = Party()
            while True:
                await share.turn(party)
                share.owe(party, 0.001)
                answered[number] += 1

        floods = [asyncio.create_task(flood(number)) for number in range(10)]
        await asyncio.sleep(1.0)
        assert min(answered) >= 5
        assert max(answered) - min(answered) <= 2
        for task in floods:
            task.cancel()

    on_share(TENTH, story)


def test_who_leaves_while_it_waits_holds_up_nobody() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        share.owe(Party(), 0.02)
        gone = [asyncio.create_task(share.turn(Party())) for _ in range(50)]
        await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        async with asyncio.timeout(1):
            await share.turn(Party())
        assert len(waited) == 51

    on_share(TENTH, story)


def test_only_the_time_in_the_loop_is_owed_and_not_what_is_waited_for() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        party = Party()

        async def work() -> str:
            await asyncio.sleep(0.5)
            time.sleep(0.05)
            await asyncio.sleep(0)
            time.sleep(0.05)
            return "done"

        assert await Measured(work(), lambda: share.measured(party)) == "done"
        assert 0.1 <= party.taken_s + CREDIT_S < 0.4

    on_share(TENTH, story)


def test_what_is_measured_raises_and_is_cancelled_as_it_would_be() -> None:
    async def story(share: LoopShare, waited: list[None]) -> None:
        ended = []

        async def fails() -> None:
            await asyncio.sleep(0)
            raise KeyError("it")

        async def waits() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        async def told(work: Awaitable[None]) -> None:
            await Measured(work, lambda: share.measured(Party()))

        with pytest.raises(KeyError, match="it"):
            await told(fails())
        waiting = asyncio.create_task(told(waits()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == [True]

    on_share(TENTH, story)
