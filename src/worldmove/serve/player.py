"""One connection that watches a session, and perhaps controls it: a bounded queue before a socket.

A slow watcher harms only itself: when its queue is full it is dropped with a reason, and goes on from the
newest block when it comes back. What waits to be sent may carry a callback; it is called once the message has
been handed to the network, or will never be.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Protocol

from worldmove.serve.allowance import Allowance
from worldmove.serve.limits import PlayLimits
from worldmove.serve.play_messages import ToClient, encode

CLOSE_WITHIN_S = 1.0
GONE = "the connection is gone"


class CloseCode(IntEnum):
    """Why a connection was closed: see docs/play-wire.md."""

    SERVER_ENDS = 1001
    FORBIDDEN = 1008
    TOO_SLOW = 4001
    BAD_MESSAGE = 4002
    NO_SESSION = 4004
    TOO_MANY = 4008
    SESSION_ENDED = 4010


class Socket(Protocol):
    """What a player needs of a WebSocket. ``send`` waits for the network; each raises ConnectionError if it is gone."""

    async def send(self, message: bytes | str) -> None: ...

    async def close(self, code: int, reason: str) -> None: ...


Left = Callable[[], None]


class Player:
    """A watcher's end at the gateway. ``run`` sends until the connection ends; everything else returns at once."""

    def __init__(self, socket: Socket, *, limits: PlayLimits | None = None) -> None:
        limits = limits or PlayLimits()
        self.messages = Allowance(limits.messages)
        """How often it may still say something."""
        self.key_changes = Allowance(limits.key_changes)
        self._socket = socket
        self._limit = limits.max_waiting
        self._queue: deque[tuple[bytes | str, Left | None]] = deque()
        self._more = asyncio.Event()
        self._end: tuple[CloseCode, str] | None = None
        self._sending: asyncio.Task[None] | None = None
        self.heard_at: float | None = None
        """When it last said something, by the loop's clock."""
        self.received_block: int | None = None
        """The newest block that the client says it has."""
        self.had_block = -1
        """The newest block that it came with and that is shown to others still: it is not sent that again."""

    @property
    def closed_with(self) -> CloseCode | None:
        """With what code this end has closed it, once ``run`` has returned; None where it was simply gone."""
        return None if self._end is None or self._end[1] == GONE else self._end[0]

    def say(self, message: ToClient) -> None:
        """Queue a JSON message."""
        self.put(encode(message))

    def put(self, message: bytes | str, left: Left | None = None) -> None:
        """Queue a message; ``left`` is called when it has gone, or when it never will."""
        if self._end is None and len(self._queue) >= self._limit:
            self.drop(CloseCode.TOO_SLOW, f"more than {self._limit} messages waited; reconnect for the newest block")
        if self._end is not None:
            if left is not None:
                left()
            return
        self._queue.append((message, left))
        self._more.set()

    def drop(self, code: CloseCode, reason: str) -> None:
        """Close at once; what is queued is not sent."""
        if self._end is None:
            self._end = (code, reason)
            self._forget_queue()
            self._more.set()
            if self._sending is not None:
                self._sending.cancel()

    def finish(self, code: CloseCode, reason: str) -> None:
        """Close once what is queued has been sent."""
        if self._end is None:
            self._end = (code, reason)
            self._more.set()

    async def run(self) -> None:
        """Send what is queued until the connection ends, then close it."""
        self._sending = asyncio.create_task(self._send())
        try:
            await asyncio.gather(self._sending, return_exceptions=True)
        finally:
            code, reason = self._end = self._end or (CloseCode.SERVER_ENDS, GONE)
            self._forget_queue()
        with suppress(ConnectionError, TimeoutError):
            # A peer that does not read would hold the closing up for ever.
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._socket.close(code, reason)

    async def _send(self) -> None:
        while True:
            while self._queue:
                message, left = self._queue.popleft()
                try:
                    await self._socket.send(message)
                finally:
                    if left is not None:
                        left()
            if self._end is not None:
                return
            self._more.clear()
            await self._more.wait()

    def _forget_queue(self) -> None:
        while self._queue:
            _, left = self._queue.popleft()
            if left is not None:
                left()
