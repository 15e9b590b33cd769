"""Whose turn it is at the engine: one call at a time, the most urgent first.

While somebody's pause is held free, no call begins but those that it waits for. That is for a part of a period, so that
nobody's block is late for it.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import IntEnum

from worldmove.transport.base import Blocking

OVERDUE_S = 1.5
"""So long an opening, or a look at a state for its offer, waits for blocks at most: at a full worker there is no
moment at which none is due, and just that worker is to be moved away from. A block waits for one such call at most.
"""


class Turn(IntEnum):
    """Why somebody wants the engine. Lower goes first; equals go in the order of asking."""

    BOUNDARY = 0
    """A freeze or an install: a player waits for it."""
    OVERDUE = 1
    """What was asked for as ``OPEN`` and has waited for OVERDUE_S."""
    OWNER = 2
    """A block of a session's owner."""
    OPEN = 3
    SPARE = 4
    """A check block of a retired copy, or a block of a throw-away copy: when no owner has work."""


class Hold:
    """Keeps every call but those of a pause from beginning, until it is ended or lapses."""

    def __init__(self, *ends: Callable[[], None]) -> None:
        self._ends = ends
        self._lapse: asyncio.TimerHandle | None = None

    def lapse_in(self, wait_s: float) -> None:
        """End it by then; said again, the later word counts."""
        self._forget_lapse()
        if self._ends:
            self._lapse = asyncio.get_running_loop().call_later(wait_s, self.end)

    def end(self) -> None:
        """Let others begin. Idempotent."""
        self._forget_lapse()
        ends, self._ends = self._ends, ()
        for end in ends:
            end()

    def _forget_lapse(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()


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
        self._begun_at = 0.0
        self._turn = Turn.SPARE
        self._num_holds = 0
        self.free_since = float("-inf")
        """When the newest call, or the newest hold, that is over ended, by the event loop's clock."""

    @asynccontextmanager
    async def take(self, turn: Turn) -> AsyncIterator[Blocking]:
        """Wait for a turn; inside it, the engine is the caller's, by the thread that it gets."""
        await self._begin(turn)
        self._turn = turn
        try:
            yield self._spare_thread if turn is Turn.SPARE else self._thread
        finally:
            self.free_since = asyncio.get_running_loop().time()
            self._end()

    def hold(self, *then: Callable[[], None]) -> Hold:
        """Keep every call but those of a pause from beginning. Whoever holds says until when; ``then`` follows."""
        self._num_holds += 1
        return Hold(self._unhold, *then)

    @property
    def taken_s(self) -> float:
        """For how long whoever has the engine has had it; 0 where nobody has."""
        return asyncio.get_running_loop().time() - self._begun_at if self._busy else 0.0

    @property
    def is_at_block(self) -> bool:
        """Whether that is a block, or a look at one's end: a player's, a check, or one of a copy that follows."""
        return self._busy and self._turn in (Turn.OWNER, Turn.SPARE)

    @property
    def is_held(self) -> bool:
        """Whether no call begins but those of a pause."""
        return self._num_holds > 0

    def _unhold(self) -> None:
        self._num_holds -= 1
        self.free_since = asyncio.get_running_loop().time()
        if not self._busy:
            self._end()

    async def _begin(self, turn: Turn) -> None:
        if not self._busy and self._may_begin(turn):
            self._give()
            return
        go: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ask(turn, go)
        later = self._overdue(go) if turn is Turn.OPEN else None
        try:
            await go
        except asyncio.CancelledError:
            if not go.cancelled():
                self._end()  # the turn had been given all the same: it goes on to the next
            raise
        finally:
            if later is not None:
                later.cancel()

    def _overdue(self, go: asyncio.Future[None]) -> asyncio.TimerHandle:
        """Ask for the same turn once more, as an urgent one, when it has waited for long."""
        return asyncio.get_running_loop().call_later(OVERDUE_S, self._ask, Turn.OVERDUE, go)

    def _ask(self, turn: Turn, go: asyncio.Future[None]) -> None:
        self._asked += 1
        heapq.heappush(self._waiting, (turn, self._asked, go))

    def _may_begin(self, turn: Turn) -> bool:
        return turn is Turn.BOUNDARY or not self._num_holds

    def _end(self) -> None:
        while self._waiting and (self._waiting[0][2].done() or self._may_begin(self._waiting[0][0])):
            _, _, go = heapq.heappop(self._waiting)
            if not go.done():
                go.set_result(None)
                self._give()
                return
        self._busy = False

    def _give(self) -> None:
        self._busy, self._begun_at = True, asyncio.get_running_loop().time()
