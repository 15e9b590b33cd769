"""The source's end of TCP paths: it listens, and sends what is asked for of the arenas that it was told to export."""

import asyncio
import socket
from collections.abc import Mapping

from worldmove.errors import TransportError
from worldmove.state.arena import AnyArena, Arena
from worldmove.transport.base import Blocking
from worldmove.transport.tcp_device import send_runs
from worldmove.transport.tcp_stream import Stream
from worldmove.transport.tcp_words import (
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
MAX_WAITING = 64
FULL_S = 0.05


class Serving:
    """Answers whoever connects and says a token of ``exports``; anybody else hears an end."""

    def __init__(self, exports: Mapping[bytes, AnyArena], stall_s: float, blocking: Blocking | None = None) -> None:
        """``stall_s``: how long an asker may take for its hello, for a request once begun, and to take an answer."""
        self._exports = exports
        self._stall_s = stall_s
        self._blocking = blocking
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._num_connections = 0

    @property
    def address(self) -> tuple[str, int] | None:
        """Where it listens, or None."""
        return None if self._listener is None else self._listener.getsockname()[:2]

    async def start(self, host: str, port: int) -> None:
        """Listen at a numeric address; port 0: any free one. Raises TransportError."""
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.settimeout(0)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(MAX_WAITING)
        except OSError as error:
            listener.close()
            raise TransportError(f"{host} port {port} cannot be listened at: {error}") from error
        self._listener = listener
        self._accepting = asyncio.create_task(self._accept(listener))

    async def close(self) -> None:
        """Listen no more, and end every connection. Idempotent."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._accepting = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, listener: socket.socket) -> None:
        async with asyncio.TaskGroup() as askers:
            while True:
                try:
                    asker, _ = await asyncio.get_running_loop().sock_accept(listener)
                except OSError:
                    await asyncio.sleep(FULL_S)  # no descriptor is left: some will be closed
                    continue
                if self._num_connections < MAX_CONNECTIONS:
                    self._num_connections += 1
                    askers.create_task(self._answer(asker))
                else:
                    asker.close()

    async def _answer(self, asker: socket.socket) -> None:
        """Serve one asker until it goes away, stalls, or says what nobody should."""
        try:
            with asker:
                stream = Stream(asker, self._stall_s)
                async with asyncio.timeout(self._stall_s):
                    arena = self._exports.get(token_of(await stream.receive(HELLO_BYTES)))
                if arena is not None:
                    await stream.send([memoryview(number(arena.size))])
                    await _serve(stream, arena, self._blocking)
        except (OSError, TimeoutError, TransportError, RuntimeError, MemoryError):
            return  # a device that could not be read, say: all others are served on
        finally:
            self._num_connections -= 1


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
