"""The path between two devices of one host through its memory: what is taken where the device's own path is not.

    source       a unix socket, its user's alone; a ticket names it and a secret token
    destination  connects, says the token, gets the descriptor of a ring of buffers; both have it pinned    before
                 asks for its extents                                                               at the boundary
    source       device -> buffer, in a thread and on a stream of its own                          both at once
    destination  buffer -> device, in a thread and on a stream of its own                          both at once

A ring carries for one pair of processes alone. What came through it is verified as over every path.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.memory import MemoryKit
from worldmove.transport.descriptors import TOKEN_BYTES, exchange
from worldmove.transport.listening import MAX_PATH
from worldmove.transport.pieces import check_extents
from worldmove.transport.ring import Ring, Rings, opened_ring
from worldmove.transport.shortage import unopened
from worldmove.transport.staged_copying import draw
from worldmove.transport.staged_line import Line, shut
from worldmove.transport.staged_serving import (
    WELCOME_BYTES,
    BlockingThread,
    NewThread,
    StagedConfig,
    StagedServing,
    Welcome,
    made_in,
    release_all,
    until_shut,
)
from worldmove.transport.tickets import read_ticket


class StagedTicket(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a slot is to be had."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATH)]
    token: Annotated[bytes, msgspec.Meta(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES)]
    size: Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]


class Staged:
    """Exports and connects for one process and its device. ``start`` it before the first export, ``close`` it."""

    name = "staged"

    def __init__(
        self, *, config: StagedConfig, kit: MemoryKit, new_thread: NewThread, tokens: Callable[[], bytes]
    ) -> None:
        """Take what it needs; ``tokens`` gives TOKEN_BYTES secret bytes, new each time."""
        self._config = config
        self._kit = kit
        self._new_thread = new_thread
        self._tokens = tokens
        self._exports: dict[bytes, DeviceArena] = {}
        self._rings = Rings(config.rings_kept)
        self._serving = StagedServing(self._exports, config, kit=kit, new_thread=new_thread, tokens=tokens)

    async def start(self) -> None:
        """Listen. Raises TransportError if the socket cannot be made."""
        await self._serving.start()

    async def close(self) -> None:
        """Listen no more, and end every export and connection. Idempotent."""
        self._exports.clear()
        await self._serving.close()
        release_all(self._rings.clear())

    async def export(self, arena: Arena) -> bytes:
        """Refuse: raises TransportError."""
        raise TransportError("staged reads a device's memory, and this slot lies in host memory")

    async def export_device(self, arena: DeviceArena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned and runs as this user."""
        if not self._serving.is_listening:
            raise TransportError("this process does not let its slots be had: it was not started, or is closed")
        token = self._tokens()
        self._exports[token] = arena
        return msgspec.msgpack.encode(StagedTicket(str(self._config.path), token, arena.size))

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected go on. Idempotent."""
        self._exports.pop(read_ticket(ticket, StagedTicket, "a staged path").token, None)

    async def connect(self, ticket: bytes) -> "StagedChannel":
        """Connect, and have a ring pinned at both ends. Raises TransportError."""
        wanted = read_ticket(ticket, StagedTicket, "a staged path")
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:  # no descriptor is left: others are played on
            raise unopened(error, "nothing can be connected here") from error
        connection.settimeout(0)
        try:
            welcome, descriptor = await self._welcomed(connection, wanted)
            thread, ring = await self._ring(welcome, descriptor)
        except BaseException:
            connection.close()
            raise
        return StagedChannel(connection, welcome.size, thread, ring, self._config.stall_s, self._rings)

    async def _welcomed(self, connection: socket.socket, wanted: StagedTicket) -> tuple[Welcome, int]:
        """Say the token; return what it stands for, and a descriptor that is the caller's to close."""
        answer_s = self._config.answer_s
        try:
            async with asyncio.timeout(answer_s):
                said, descriptors = await exchange(connection, wanted.path, wanted.token, WELCOME_BYTES)
        except TimeoutError as error:
            raise TransportError(f"no answer at {wanted.path} within {answer_s:g} s") from error
        except OSError as error:
            raise unopened(error, f"no answer at {wanted.path}") from error
        if not descriptors:
            raise TransportError("the source lets nothing be read under this ticket any more")
        try:
            welcome = msgspec.msgpack.decode(said, type=Welcome)
            if welcome.size != wanted.size:
                raise TransportError(f"the source's slot has {welcome.size} bytes, not {wanted.size}")
        except BaseException as error:
            os.close(descriptors[0])
            if isinstance(error, msgspec.MsgspecError):
                raise TransportError(f"not a welcome of a staged path: {error}") from error
            raise
        return welcome, descriptors[0]

    async def _ring(self, welcome: Welcome, descriptor: int) -> tuple[BlockingThread, Ring]:
        """Return a thread and the ring, pinned; closes the descriptor. Raises TransportError."""
        try:
            thread = self._new_thread("staged-in")
        except RuntimeError as error:
            os.close(descriptor)
            raise TransportError(f"there is no thread for a staged path: {error}") from error
        held = self._rings.take(welcome.ring)
        if held is not None:
            os.close(descriptor)
            return thread, held
        try:
            opened = await made_in(thread, lambda: opened_ring(welcome.ring, welcome.shape, descriptor, self._kit))
        except BaseException:
            thread.close()
            raise
        return thread, opened


class StagedChannel:
    """A connection to another process's slot, and a ring that both have pinned."""

    def __init__(
        self,
        connection: socket.socket,
        size: int,
        thread: BlockingThread,
        ring: Ring,
        stall_s: float,
        rings: Rings,
    ) -> None:
        self._connection = connection
        self._size = size
        self._thread = thread
        self._ring: Ring | None = ring
        self._line = Line(connection, stall_s)
        self._rings = rings
        self._broken = False
        self._one_at_a_time = asyncio.Lock()

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Refuse: raises TransportError."""
        raise TransportError("staged brings bytes to a device, and this slot lies in host memory")

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to the same offset of ``into``, off the loop. Raises TransportError.

        A pull that was cut short leaves words under way that the next would take for its own: so the connection is
        closed, and there is no next.
        """
        async with self._one_at_a_time:
            ring = self._ring
            if ring is None or self._broken:
                raise TransportError("the channel is closed")
            check_extents(extents, self._size, into.size)
            try:
                await until_shut(self._connection, self._thread, lambda: draw(self._line, ring, extents, into))
            except BaseException:
                self._broken = True
                shut(self._connection)
                raise

    async def close(self) -> None:
        """Close the connection; the ring lies ready for the next. Idempotent."""
        shut(self._connection)
        async with self._one_at_a_time:
            ring, self._ring = self._ring, None
            if ring is None:
                return
            try:
                old = [ring] if self._broken else self._rings.keep(ring.identity, ring)
                if old:
                    await self._thread(lambda: release_all(old))
            finally:
                self._connection.close()
                self._thread.close()
