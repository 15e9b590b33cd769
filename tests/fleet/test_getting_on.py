"""What a worker was asked for is waited for as long as it gets on with it, and no longer."""

import asyncio
import time

import pytest

from tests.move import virtual
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.workers import WorkerRecord

WITHIN_S = 10.0


async def waited_s(*, gets_on_until_s: float, every_s: float = 1.0, answers_after_s: float = 1e9) -> float:
    """Return for how long an answer was waited for; its worker gets something done every so often until some time."""
    loop, worker = asyncio.get_running_loop(), WorkerRecord(name="a", incarnation=1)
    begun = loop.time()
    answer: asyncio.Future[None] = loop.create_future()

    async def work() -> None:
        while loop.time() - begun + every_s <= gets_on_until_s:
            await asyncio.sleep(every_s)
            worker.num_done += 1

    working = asyncio.create_task(work())
    timer = loop.call_at(begun + answers_after_s, answer.set_result, None)
    try:
        async with while_it_gets_on(lambda: worker.num_done, WITHIN_S):
            await answer
    except TimeoutError:
        assert answer.cancelled()
    finally:
        timer.cancel()
        working.cancel()
    return loop.time() - begun


@pytest.mark.parametrize("until_s", [0.0, 5.0, 60.0, 600.0])
def test_who_gets_nothing_done_any_more_is_waited_for_no_longer_than_that(until_s: float) -> None:
    took_s = virtual.run(waited_s(gets_on_until_s=until_s))
    assert until_s + WITHIN_S - 2.0 <= took_s <= until_s + WITHIN_S + 2.0


@pytest.mark.parametrize("after_s", [0.5, 9.0, 300.0])
def test_an_answer_counts_however_late_it_comes_from_who_gets_on(after_s: float) -> None:
    assert virtual.run(waited_s(gets_on_until_s=1e6, answers_after_s=after_s)) == pytest.approx(after_s)


def test_time_in_which_this_server_did_not_run_is_nobodys_silence() -> None:
    """It was stopped, say: what has come meanwhile is heard first."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        loop.call_soon(time.sleep, 0.3)
        loop.call_later(0.32, answer.set_result, None)
        async with while_it_gets_on(lambda: 0, 0.2):
            await answer

    asyncio.run(run())
