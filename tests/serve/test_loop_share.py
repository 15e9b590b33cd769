"""Requests take their share of the event loop and no more, however many connections ask."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from worldmove.serve.allowance import Pace
from worldmove.serve.limits import HttpLimits
from worldmove.serve.loop_share import LoopShare

SHARE = Pace(burst=0.05, per_s=0.25)


async def silent() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def unheard(_: Message) -> None: ...


def busy_for(seconds: float, answered: Callable[[Scope], None] = lambda scope: None) -> Any:
    """An application that computes for so long, in two pieces."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(2):
            until = time.monotonic() + seconds / 2
            while time.monotonic() < until:
                pass
            await asyncio.sleep(0)
        answered(scope)

    return app


def http(client: object) -> Scope:
    return {"type": "http", "client": client}


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await story()

    asyncio.run(limited())


def test_many_that_ask_all_the_time_leave_the_rest_of_the_loop_to_others() -> None:
    refused: list[str] = []

    async def story() -> None:
        share = LoopShare(busy_for(0.01), SHARE, refused.append)

        async def ask(client: int) -> None:
            while True:
                await share(http(client), silent, unheard)

        asking = [asyncio.create_task(ask(client)) for client in range(50)]
        begun, late_s = time.monotonic(), 0.0
        while (now := time.monotonic()) - begun < 2.0:
            await asyncio.sleep(0.005)
            late_s += time.monotonic() - now - 0.005
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        assert late_s < 2.0 * 0.5, "another's time that it waited for the loop"

    run(story)
    assert set(refused) == {"loop"}


def test_who_asks_for_the_first_time_goes_before_all_who_ask_again_and_those_take_turns() -> None:
    order: list[object] = []

    async def story() -> None:
        share = LoopShare(busy_for(0.02, lambda scope: order.append(scope["client"])), SHARE, lambda why: None)
        await asyncio.gather(*(share(http(client), silent, unheard) for client in range(8)))
        order.clear()
        again = [asyncio.create_task(share(http(client), silent, unheard)) for client in range(8)]
        await asyncio.sleep(0)
        first = asyncio.create_task(share(http("new"), silent, unheard))
        await asyncio.gather(*again, first)

    run(story)
    assert "new" in order[:2], "behind the one that waits already, at most"
    assert [client for client in order if client != "new"] == list(range(8))


def test_who_leaves_while_it_waits_holds_up_nobody() -> None:
    async def story() -> None:
        share = LoopShare(busy_for(0.03), SHARE, lambda why: None)
        waiting = [asyncio.create_task(share(http(client), silent, unheard)) for client in range(20)]
        for turn, task in enumerate(waiting[:-1]):
            await asyncio.sleep(0.001 * (turn % 3))
            task.cancel()
        await waiting[-1]
        await asyncio.gather(*waiting, return_exceptions=True)
        await share(http("after"), silent, unheard)

    run(story)


def test_a_few_requests_wait_for_nothing() -> None:
    refused: list[str] = []

    async def story() -> None:
        share = LoopShare(busy_for(0.0), HttpLimits().loop, refused.append)
        for _ in range(50):
            await share(http("one"), silent, unheard)
            await asyncio.sleep(0.005)

    run(story)
    assert refused == []


def test_a_stream_that_flows_counts_for_nothing_and_play_connections_wait_for_nobody() -> None:
    refused: list[str] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await busy_for(0.3)(scope, receive, send)

    async def story() -> None:
        share = LoopShare(stream, SHARE, refused.append)
        await share(http("one"), silent, unheard)
        await share(http("one"), silent, unheard)
        played = LoopShare(busy_for(0.3), SHARE, refused.append)
        for _ in range(2):
            await played({"type": "websocket", "client": "one"}, silent, unheard)

    run(story)
    assert refused == []


def test_what_the_application_raises_and_is_told_goes_through() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            raise ValueError("told") from None

    async def story() -> None:
        asked = asyncio.create_task(LoopShare(failing, SHARE, lambda why: None)(http(1), silent, unheard))
        await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(ValueError, match="told"):
            await asked

    run(story)
