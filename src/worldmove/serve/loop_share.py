"""What all requests together take of the event loop: a share, so that blocks and whoever plays have the rest.

A limit on each connection is none on many of them: 400 that each asked for a plan 1.4 times a second took the whole
loop, and every player's blocks came 2 s late. So the time is measured that answering takes here, and while more than
the share was taken, the next request waits. Connections take turns, and one that asks for the first time goes first:
who looks once is not behind whoever looks all the time. New ones have a pace of their own.

What a stream takes once it flows counts for nothing: it waits for its client, in pieces.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worldmove.serve.allowance import Allowance, Pace

LEAST_S = 0.001
"""What a request takes at least, of which most is not seen here: it is read, routed and written."""
MAX_MET = 4096
"""Connections that are remembered to have asked before; more than can be open."""


class LoopShare:
    """An application whose requests wait where all of them have taken more of the loop than ``share``.

    ``share`` is in seconds, and seconds a second. ``on_refused`` hears of each that waits.
    """

    def __init__(self, app: ASGIApp, share: Pace, on_refused: Callable[[str], None]) -> None:
        self._app = app
        self._allowance = Allowance(share)
        self._on_refused = on_refused
        self._line = _Line()
        self._met: dict[object, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._turn(scope.get("client"))
        flows = False

        async def sent(message: Message) -> None:
            nonlocal flows
            flows = flows or message.get("more_body", False)
            await send(message)

        async def received() -> Message:
            nonlocal flows
            message = await receive()
            flows = flows or message.get("more_body", False)
            return message

        def took(seconds: float) -> None:
            if not flows:
                self._allowance.owe(_now(), seconds)

        await _Timed(self._app(scope, received, sent), took)  # type: ignore[arg-type]

    async def _turn(self, client: object) -> None:
        """Wait until a request of this connection may be answered."""
        await self._line.reach(has_asked=client in self._met)
        try:
            self._met.pop(client, None)
            self._met[client] = None
            if len(self._met) > MAX_MET:
                del self._met[next(iter(self._met))]
            wait_s = self._allowance.owe(_now(), LEAST_S)
            if wait_s > 0:
                self._on_refused("loop")
                await asyncio.sleep(wait_s)
        finally:
            self._line.leave()


class _Line:
    """Where one waits at a time, and the others behind: first who asks for the first time, in the order of asking."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._num_asked = 0

    async def reach(self, *, has_asked: bool) -> None:
        """Wait for its beginning. Whoever has reached it is to leave it."""
        if not self._is_taken:
            self._is_taken = True
            return
        go: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._num_asked += 1
        heapq.heappush(self._waiting, (has_asked, self._num_asked, go))
        try:
            await go
        except asyncio.CancelledError:
            if go.done() and not go.cancelled():
                self.leave()  # it was reached all the same
            raise

    def leave(self) -> None:
        """Let the next one come."""
        while self._waiting:
            _, _, go = heapq.heappop(self._waiting)
            if not go.done():
                go.set_result(None)
                return
        self._is_taken = False


class _Timed:
    """A coroutine that says, each time that it gives the loop back, for how long it had it."""

    def __init__(self, inner: Coroutine[Any, Any, None], took: Callable[[float], None]) -> None:
        self._inner = inner
        self._took = took

    def __await__(self) -> Generator[Any, Any, None]:
        raised: BaseException | None = None
        with suppress(StopIteration):
            while True:
                begin = _now()
                try:
                    waited_for = self._inner.send(None) if raised is None else self._inner.throw(raised)
                finally:
                    self._took(_now() - begin)
                try:
                    yield waited_for
                    raised = None
                except BaseException as error:  # noqa: BLE001  (it is the inner one's, whatever it is)
                    raised = error


def _now() -> float:
    return asyncio.get_running_loop().time()
