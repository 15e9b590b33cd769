"""The path between two processes of one host: the destination maps the source's arena for reading, and copies.

    source       a unix socket, its user's alone; a ticket names it and a secret token
    destination  connects, says the token, and gets the arena's descriptor
                 checks its size and seals, maps it for reading, touches its pages      before the freeze
                 copies into its own arena                                              at the boundary

Nobody but the source can write the source's arena (it is sealed), nobody but the destination the destination's.
Each end asks the kernel who the other is: another user gets nothing, whatever token it says.
"""

import asyncio
import mmap
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.transport.base import Blocking, HasDescriptor
from worldmove.transport.descriptors import TOKEN_BYTES, check_peer, fetch, map_sealed, receive_token, send_descriptor
from worldmove.transport.listening import MAX_PATH, Listening, check_path
from worldmove.transport.pieces import copy_in_pieces
from worldmove.transport.shortage import FULL
from worldmove.transport.tickets import read_ticket
from worldmove.units import PAGE_BYTES

MAX_ASKERS = 64
"""More than a worker's slots and their attempts could need: each holds a descriptor, and a process has a thousand."""


class ShmTicket(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where an arena is to be had."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATH)]
    token: Annotated[bytes, msgspec.Meta(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES)]
    size: Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShmConfig:
    """Where a process lets its arenas be had."""

    path: Path
    """Its socket: a new name in a folder that only its user can enter. At most 100 characters."""
    answer_s: float = 2.0
    """How long the other end may take for its one message."""

    def __post_init__(self) -> None:
        check_path(self.path)


class SharedMemory:
    """Exports and connects for one process. ``start`` it before the first export, ``close`` it at the end."""

    name = "shm"

    def __init__(self, *, config: ShmConfig, blocking: Blocking, tokens: Callable[[], bytes]) -> None:
        """Take what it needs; ``tokens`` gives TOKEN_BYTES secret bytes, new each time."""
        self._config = config
        self._blocking = blocking
        self._tokens = tokens
        self._exports: dict[bytes, HasDescriptor] = {}
        self._listening = Listening(self._answer, max_askers=MAX_ASKERS, full=FULL)

    async def start(self) -> None:
        """Listen. Raises TransportError if the socket cannot be made."""
        self._listening.start_unix(self._config.path)

    async def close(self) -> None:
        """Listen no more, and end every export. Idempotent."""
        self._exports.clear()
        await self._listening.close()

    async def export(self, arena: Arena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned and runs as this user."""
        return self._ticket(arena, arena.size)

    async def lend(self, memory: HasDescriptor) -> bytes:
        """Let a page be had, to be written as well, by whoever holds the ticket returned and runs as this user."""
        return self._ticket(memory, PAGE_BYTES)

    async def borrow(self, ticket: bytes) -> int:
        """Return the descriptor that a ticket names; it is the caller's to close. Raises TransportError."""
        wanted = read_ticket(ticket, ShmTicket, "shared memory")
        return await fetch(wanted.path, wanted.token, self._config.answer_s)

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected keep what they mapped. Idempotent."""
        self._exports.pop(read_ticket(ticket, ShmTicket, "shared memory").token, None)

    async def connect(self, ticket: bytes) -> "ShmChannel":
        """Get the descriptor, map it for reading and touch its pages. Raises TransportError."""
        wanted = read_ticket(ticket, ShmTicket, "shared memory")
        descriptor = await fetch(wanted.path, wanted.token, self._config.answer_s)
        mapping = await self._blocking(lambda: map_sealed(descriptor, wanted.size))
        return ShmChannel(mapping, self._blocking)

    def _ticket(self, memory: HasDescriptor, size: int) -> bytes:
        if not self._listening.is_listening:
            raise TransportError("this process does not let its arenas be had: it was not started, or is closed")
        token = self._tokens()
        ticket = msgspec.msgpack.encode(ShmTicket(str(self._config.path), token, size))
        self._exports[token] = memory
        return ticket

    async def _answer(self, asker: socket.socket, known: Callable[[], None]) -> None:
        """Give one asker what its token stands for, or nothing: it hears an end either way."""
        try:
            check_peer(asker)
            async with asyncio.timeout(self._config.answer_s):
                token = await receive_token(asker)
            if token in self._exports:
                known()
                send_descriptor(asker, self._exports[token].fd)
        except (OSError, TimeoutError, TransportError):
            return  # it went away, said nothing, or is not ours


class ShmChannel:
    """A read-only map of another process's arena."""

    def __init__(self, mapping: mmap.mmap, blocking: Blocking) -> None:
        self._mapping = mapping
        self._blocking = blocking

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent to the same offset of ``into``. Raises TransportError."""
        if self._mapping.closed:
            raise TransportError("the channel is closed")
        with memoryview(self._mapping) as source:
            await copy_in_pieces(source, extents, into, self._blocking)

    async def close(self) -> None:
        """Give the map back. Idempotent."""
        await self._blocking(self._mapping.close)
