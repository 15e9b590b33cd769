"""Whose turn it is at the engine: one call at a time, the most urgent first."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

from worldmove.move.hosts import Blocking


class Turn(IntEnum):
    """Why somebody wants the engine. Lower goes first; equals go in the order of asking."""

    BOUNDARY = 0
    """A freeze or an install: a player waits for it."""
    OWNER = 1
    """A block of a session's owner."""
    OPEN = 2
    SPARE = 3
    """A check block of a retired copy, or a block of a throw-away copy: when no owner has work."""


class Turns:
    """Serialises the use of one engine. A call that has begun is never interrupted.

    Spare blocks are stepped by a thread of their own, which steps back where a player's block, in this process or
    another, wants its core. A thread cannot be made nice for a while: going back takes a privilege.
    """

    def __init__(self, engine_thread: Blocking, *, spare_thread: Blocking | None = None) -> None:
        self._thread = engine_thread
        self._spare_thread = spare_thread or engine_thread
        self._waiting: list[tuple[Turn, int, asyncio.Future[None]]] = []
        self._asked = 0
        self._busy = False

    @asynccontextmanager
    async def take(self, turn: Turn) -> AsyncIterator[Blocking]:
        """Wait for a turn; inside it, the engine is the caller's, by the thread that it gets."""
        await self._begin(turn)
        try:
            yield self._spare_thread if turn is Turn.SPARE else self._thread
        finally:
            self._end()

    async def _begin(self, turn: Turn) -> None:
        if not self._busy:
            self._busy = True
            return
        go: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked += 1
        heapq.heappush(self._waiting, (turn, self._asked, go))
        try:
            await go
        except asyncio.CancelledError:
            if not go.cancelled():
                self._end()  # the turn had been given all the same: it goes on to the next
            raise

    def _end(self) -> None:
        while self._waiting:
            _, _, go = heapq.heappop(self._waiting)
            if not go.done():
                go.set_result(None)
                return
        self._busy = False
