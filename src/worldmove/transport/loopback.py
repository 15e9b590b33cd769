"""The path within one process: the public fake, and the fastest way to try a move."""

from collections.abc import Callable, Sequence

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.arena import Arena, Extent
from worldmove.transport.base import Blocking


class Loopback:
    """Copies from one arena of this process to another. Every worker that takes part shares one of these."""

    name = "loopback"

    def __init__(self, *, blocking: Blocking, tokens: Callable[[], bytes]) -> None:
        self._blocking = blocking
        self._tokens = tokens
        self._exports: dict[bytes, Arena] = {}

    async def export(self, arena: Arena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned."""
        ticket = self._tokens()
        self._exports[ticket] = arena
        return ticket

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Idempotent."""
        self._exports.pop(ticket, None)

    async def connect(self, ticket: bytes) -> "LoopbackChannel":
        """Connect to an exported arena. Raises TransportError."""
        if ticket not in self._exports:
            raise TransportError("nothing is exported under this ticket")
        return LoopbackChannel(self._exports[ticket], self._blocking)


class LoopbackChannel:
    """A way to one arena of this process."""

    def __init__(self, arena: Arena, blocking: Blocking) -> None:
        self._source: memoryview | None = arena.buffer.toreadonly()
        self._blocking = blocking

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent to the same offset of ``into``. Raises TransportError."""
        source = self._source
        if source is None:
            raise TransportError("the channel is closed")
        check_extents(extents, len(source), len(into))
        await self._blocking(lambda: copy_extents(source, extents, into))

    async def close(self) -> None:
        """Let go of the source's memory. Idempotent."""
        self._source = None


def check_extents(extents: Sequence[Extent], source_bytes: int, target_bytes: int) -> None:
    """Raise TransportError unless every extent lies inside both memories."""
    for extent in extents:
        if extent.offset < 0 or extent.length < 0 or extent.end > min(source_bytes, target_bytes):
            raise TransportError(f"bytes {extent.offset} to {extent.end} are not all in both memories")


def copy_extents(source: memoryview, extents: Sequence[Extent], into: memoryview) -> None:
    """Copy, letting other threads run meanwhile: numpy gives the interpreter's lock away, a slice does not."""
    here, there = np.frombuffer(into, dtype=np.uint8), np.frombuffer(source, dtype=np.uint8)
    for extent in extents:
        np.copyto(here[extent.offset : extent.end], there[extent.offset : extent.end])
