"""The path within one process: the public fake, and the fastest way to try a move."""

import os
from collections.abc import Callable, Sequence

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.transport.base import Blocking, HasDescriptor
from worldmove.transport.pieces import copy_in_pieces


class Loopback:
    """Copies from one arena of this process to another. Every worker that takes part shares one of these."""

    name = "loopback"

    def __init__(self, *, blocking: Blocking, tokens: Callable[[], bytes]) -> None:
        self._blocking = blocking
        self._tokens = tokens
        self._exports: dict[bytes, Arena] = {}
        self._lent: dict[bytes, HasDescriptor] = {}

    async def export(self, arena: Arena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned."""
        ticket = self._tokens()
        self._exports[ticket] = arena
        return ticket

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected keep what they have. Idempotent."""
        self._exports.pop(ticket, None)
        self._lent.pop(ticket, None)

    async def lend(self, memory: HasDescriptor) -> bytes:
        """Let a descriptor be had by whoever holds the ticket returned."""
        ticket = self._tokens()
        self._lent[ticket] = memory
        return ticket

    async def borrow(self, ticket: bytes) -> int:
        """Return a copy of the descriptor that a ticket names. Raises TransportError."""
        if ticket not in self._lent:
            raise TransportError("nothing is lent under this ticket")
        return os.dup(self._lent[ticket].fd)

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
        if self._source is None:
            raise TransportError("the channel is closed")
        await copy_in_pieces(self._source, extents, into, self._blocking)

    async def close(self) -> None:
        """Let go of the source's memory. Idempotent."""
        self._source = None
