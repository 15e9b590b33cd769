"""The source's end of staged paths: it lends each process that asks a ring, and fills it with what is asked for.

Each connection has a thread of its own. It waits for requests, so that the loop and what else it does, and other
moves, have no part in a pull.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from worldmove.errors import WorldMoveError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import Blocking, T
from worldmove.transport.descriptors import check_peer, receive_token
from worldmove.transport.listening import Listening, check_path
from worldmove.transport.ring import IDENTITY_BYTES, OwnRing, Ring, Rings, RingShape
from worldmove.transport.shortage import FULL
from worldmove.transport.staged_copying import serve
from worldmove.transport.staged_line import Line, shut

WELCOME_BYTES = 256
MAX_CONNECTIONS = 64
"""More than a worker's slots and their attempts could need: what comes beyond is turned away at once."""


class BlockingThread(Blocking, Protocol):
    """A thread that runs functions one after another."""

    def close(self) -> None:
        """End it."""
        ...


NewThread = Callable[[str], BlockingThread]
"""Begins a thread of a name. Raises RuntimeError where there can be none."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a source answers a token with, beside a ring's descriptor."""

    size: Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]
    """Of the slot."""
    ring: Annotated[bytes, msgspec.Meta(min_length=IDENTITY_BYTES, max_length=IDENTITY_BYTES)]
    shape: RingShape


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedConfig:
    """Where a process lets its slots be had, through which ring, and how long it waits."""

    path: Path
    """Its socket: a new name in a folder that only its user can enter. At most 100 characters."""
    shape: RingShape = field(default_factory=RingShape)
    rings_kept: int = 2
    """Rings that lie ready at each end; each is so much pinned host memory."""
    answer_s: float = 5.0
    """How long the other end may take to connect: it pins memory meanwhile."""
    stall_s: float = 2.0
    """How long the other end may take to go on."""

    def __post_init__(self) -> None:
        check_path(self.path)


class StagedServing:
    """Answers whoever connects and says a token of ``exports``; anybody else hears an end."""

    def __init__(
        self,
        exports: Mapping[bytes, DeviceArena],
        config: StagedConfig,
        *,
        kit: MemoryKit,
        new_thread: NewThread,
        tokens: Callable[[], bytes],
    ) -> None:
        self._exports = exports
        self._config = config
        self._kit = kit
        self._new_thread = new_thread
        self._tokens = tokens
        self._rings = Rings(config.rings_kept)
        self._listening = Listening(self._answer, max_askers=MAX_CONNECTIONS, full=FULL)

    @property
    def is_listening(self) -> bool:
        """Whether anybody can connect."""
        return self._listening.is_listening

    async def start(self) -> None:
        """Listen. Raises TransportError if the socket cannot be made."""
        self._listening.start_unix(self._config.path)

    async def close(self) -> None:
        """Listen no more, end every connection, and give the rings back. Idempotent."""
        await self._listening.close()
        release_all(self._rings.clear())

    async def _answer(self, asker: socket.socket, known: Callable[[], None]) -> None:
        """Serve one asker until it goes away, stalls, or says what nobody should."""
        try:
            process = check_peer(asker)
            async with asyncio.timeout(self._config.answer_s):
                arena = self._exports.get(await receive_token(asker))
            if arena is not None:
                known()
                await self._serve(asker, arena, process)
        except (OSError, TimeoutError, WorldMoveError, RuntimeError, MemoryError):
            return  # a device that could not be read, say: all others are served on

    async def _serve(self, asker: socket.socket, arena: DeviceArena, process: int) -> None:
        thread = self._new_thread("staged-out")
        try:
            held = self._rings.take(process)
            ring = held if held is not None else await made_in(thread, self._made)
            try:
                _welcome(asker, arena, ring)
                line = Line(asker, self._config.stall_s)
                await until_shut(asker, thread, lambda: serve(line, ring, arena))
            finally:
                # One within a process is for measuring, and not needed again.
                old = [ring] if process == os.getpid() else self._rings.keep(process, ring)
                if old:
                    await thread(lambda: release_all(old))
        finally:
            thread.close()

    def _made(self) -> Ring:
        return OwnRing(identity=self._tokens()[:IDENTITY_BYTES], shape=self._config.shape, kit=self._kit)


def _welcome(asker: socket.socket, arena: DeviceArena, ring: Ring) -> None:
    assert isinstance(ring, OwnRing)
    said = msgspec.msgpack.encode(Welcome(arena.size, ring.identity, ring.shape))
    socket.send_fds(asker, [said], [ring.descriptor])


async def until_shut(connection: socket.socket, thread: Blocking, work: Callable[[], T]) -> T:
    """Run work that waits on a connection. Cancelled, it shuts that, and waits until the work has ended."""
    running = asyncio.ensure_future(thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        shut(connection)
        await asyncio.gather(running, return_exceptions=True)
        raise


async def made_in(thread: Blocking, make: Callable[[], Ring]) -> Ring:
    """Make a ring in a thread. Cancelled meanwhile, it is released: nobody would know of it."""
    made: list[Ring] = []
    try:
        await thread(lambda: made.append(make()))
    except BaseException:
        release_all(made)
        raise
    return made[0]


def release_all(rings: Sequence[Ring]) -> None:
    """Give rings back. Raises TransportError."""
    for ring in rings:
        ring.release()
