"""The source's end of TCP paths: it listens, and sends what is asked for of the arenas that it was told to export."""

import asyncio
import socket
from collections.abc import Callable, Mapping

from worldmove.errors import WorldMoveError
from worldmove.state.arena import AnyArena, Arena
from worldmove.transport.base import Blocking
from worldmove.transport.listening import Listening
from worldmove.transport.tcp_device import send_runs
from worldmove.transport.tcp_stream import Stream
from worldmove.transport.tcp_words import (
    AT_LIMIT,
    HELLO_BYTES,
    NUMBER_BYTES,
    RUN_BYTES,
    num_runs_of,
    number,
    runs_of,
    token_of,
)

MAX_CONNECTIONS = 256
"""More than a worker's slots and their attempts could need: what comes beyond is turned away at once."""


class Serving:
    """Answers whoever connects and says a token of ``exports``; anybody else hears an end."""

    def __init__(self, exports: Mapping[bytes, AnyArena], stall_s: float, blocking: Blocking | None = None) -> None:
        """``stall_s``: how long an asker may take for its hello, for a request once begun, and to take an answer."""
        self._exports = exports
        self._stall_s = stall_s
        self._blocking = blocking
        self._listening = Listening(self._answer, max_askers=MAX_CONNECTIONS, full=number(AT_LIMIT))

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens, or None."""
        return self._listening.address

    async def start(self, host: str, port: int) -> None:
        """Listen at a numeric address; port 0: any free one. Raises TransportError."""
        self._listening.start_tcp(host, port)

    async def close(self) -> None:
        """Listen no more, and end every connection. Idempotent."""
        await self._listening.close()

    async def _answer(self, asker: socket.socket, known: Callable[[], None]) -> None:
        """Serve one asker until it goes away, stalls, or says what nobody should."""
        try:
            stream = Stream(asker, self._stall_s)
            async with asyncio.timeout(self._stall_s):
                arena = self._exports.get(token_of(await stream.receive(HELLO_BYTES)))
            if arena is not None:
                known()
                await stream.send([memoryview(number(arena.size))])
                await _serve(stream, arena, self._blocking)
        except (OSError, TimeoutError, WorldMoveError, RuntimeError, MemoryError):
            return  # a device that could not be read, say: all others are served on


async def _serve(stream: Stream, arena: AnyArena, blocking: Blocking | None) -> None:
    while True:
        await stream.spoken()
        num_runs = num_runs_of(await stream.receive(NUMBER_BYTES))
        runs = runs_of(await stream.receive(num_runs * RUN_BYTES), arena.size)
        answer = [memoryview(number(sum(run.length for run in runs)))]
        if isinstance(arena, Arena):
            memory = arena.buffer.toreadonly()
            await stream.send(answer + [memory[run.offset : run.end] for run in runs])
        elif blocking is not None:
            await stream.send(answer)
            await send_runs(stream, runs, arena, blocking)
