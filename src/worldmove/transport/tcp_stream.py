"""One TCP connection as both ends use it: bytes go straight out of, and straight into, the memory that they are of.

Nothing here runs in a thread: a call takes at most TURN_BYTES and then lets the loop go on, so whoever is cancelled
is cancelled between two calls, and nothing writes behind it.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from worldmove.errors import TransportError

TURN_BYTES = 1 << 20
"""Some tenths of a millisecond of copying: what else the process does waits no longer."""
MAX_PARTS = 1024
"""The system's own limit of pieces in one call."""
_PROBE_S, _PROBES = 5, 3


class Stream:
    """One end of a connection. Each wait for the other end is at most ``stall_s``."""

    def __init__(self, connection: socket.socket, stall_s: float) -> None:
        """Take over a connected socket. Raises OSError where it is one no more."""
        self._connection = connection
        self._stall_s = stall_s
        connection.settimeout(0)
        # Requests are small: kept back to be joined with a next one, each would cost tens of milliseconds.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # An end that vanished without a word is found out, though nobody asks anything of it.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _PROBE_S * _PROBES * 1000)

    @property
    def closed(self) -> bool:
        """Whether this end has closed it."""
        return self._connection.fileno() < 0

    def close(self) -> None:
        """Close it at once; what was not sent yet is dropped. Idempotent."""
        self._connection.close()

    async def send(self, parts: Sequence[memoryview]) -> None:
        """Send these bytes, in order. Raises TransportError if the other end takes none of them for too long."""
        loop = asyncio.get_running_loop()
        await self._all(parts, self._connection.sendmsg, loop.add_writer, loop.remove_writer)

    async def receive_into(self, parts: Sequence[memoryview]) -> None:
        """Fill these places, in order, with what arrives. Raises TransportError if it ends or stalls before."""
        loop = asyncio.get_running_loop()
        await self._all(
            parts, lambda views: self._connection.recvmsg_into(views)[0], loop.add_reader, loop.remove_reader
        )

    async def receive(self, num_bytes: int) -> bytes:
        """Return exactly so many bytes. Raises TransportError."""
        taken = bytearray(num_bytes)
        await self.receive_into([memoryview(taken)])
        return bytes(taken)

    async def spoken(self) -> None:
        """Wait, for as long as it takes, until the other end has said something or has gone."""
        loop = asyncio.get_running_loop()
        await self._until(loop.add_reader, loop.remove_reader)

    async def _all(
        self,
        parts: Sequence[memoryview],
        transfer: Callable[[list[memoryview]], int],
        watch: Callable[..., object],
        unwatch: Callable[[socket.socket], bool],
    ) -> None:
        left = [part for part in parts if part.nbytes]
        left.reverse()  # the next is the last: taking it away moves nothing
        while left:
            try:
                moved = transfer(_turn(left))
            except BlockingIOError:
                await self._ready(watch, unwatch)
                continue
            except OSError as error:
                raise TransportError(f"the connection broke: {error}") from error
            if not moved:
                raise TransportError("the other end closed the connection")
            _advance(left, moved)
            await asyncio.sleep(0)

    async def _ready(self, watch: Callable[..., object], unwatch: Callable[[socket.socket], bool]) -> None:
        try:
            async with asyncio.timeout(self._stall_s):
                await self._until(watch, unwatch)
        except TimeoutError as error:
            raise TransportError(f"nothing went over the connection for {self._stall_s:g} s") from error

    async def _until(self, watch: Callable[..., object], unwatch: Callable[[socket.socket], bool]) -> None:
        ready = asyncio.Event()
        watch(self._connection, ready.set)
        try:
            await ready.wait()
        finally:
            unwatch(self._connection)


def _turn(left: list[memoryview]) -> list[memoryview]:
    """Return the next parts, TURN_BYTES of them at most."""
    chosen: list[memoryview] = []
    room = TURN_BYTES
    for part in reversed(left[-MAX_PARTS:]):
        chosen.append(part[:room])
        room -= min(room, part.nbytes)
        if not room:
            break
    return chosen


def _advance(left: list[memoryview], moved: int) -> None:
    """Take what was moved off the front."""
    while moved:
        first = left.pop()
        if moved < first.nbytes:
            left.append(first[moved:])
            return
        moved -= first.nbytes
