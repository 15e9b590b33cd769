"""A path of a worker between two slots, for who has no loop: ``peer`` on a device, else ``shm``, or the one named."""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from worldmove.errors import TransportError
from worldmove.move.copying import Copying, copying_in, is_prompt
from worldmove.move.device_path import export_slot, open_window
from worldmove.state.arena import AnyArena
from worldmove.state.extent import Extent
from worldmove.state.gate import number_of
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import Channel, PromptChannel, Transport
from worldmove.transport.tcp import TcpConfig
from worldmove.worker.transports import LocalTransports

T = TypeVar("T")


class PathHere:
    """One process's end of a path; its sockets are served by a thread while it is entered."""

    def __init__(self, socket: Path, kit: MemoryKit | None, rng: random.Random, name: str | None = None) -> None:
        self._paths = LocalTransports(
            socket, inline, tcp=TcpConfig(host="127.0.0.1"), kit=kit, random_bytes=os.urandom, rng=rng
        )
        self._path: Transport = self._paths.by_name[name or ("shm" if kit is None else "peer")]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="path", daemon=True)
        self._channel: Channel | None = None

    def __enter__(self) -> "PathHere":
        self._thread.start()
        self._do(self._paths.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._paths.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def export(self, arena: AnyArena) -> bytes:
        """Let a slot be read; return the ticket. Raises TransportError."""
        return self._do(export_slot(self._path, arena))

    def connect(self, ticket: bytes) -> None:
        """Connect to another process's slot. Raises TransportError."""
        self._channel = self._do(self._path.connect(ticket))

    def pull(self, extents: Sequence[Extent], arena: AnyArena) -> None:
        """Bring extents into a slot through a window that is closed afterwards. Raises TransportError."""
        if self._channel is None:
            raise TransportError("there is no channel")
        window = open_window(arena)
        self._do(window.fill(self._channel, extents))
        window.close()

    def copying(self, arena: AnyArena, nonce: bytes | None = None) -> Copying | None:
        """Open a slot's window for copies that start at once; None where the path starts none. Raises TransportError.

        ``nonce``: of the attempt in which the source's gate is to say that all was read.
        """
        if not is_prompt(arena, self._channel):
            return None
        return copying_in(arena, self._channel, None if nonce is None else number_of(nonce))

    def look_ahead(self) -> None:
        """Let the device find its ways to the other slot. Raises TransportError."""
        if isinstance(self._channel, PromptChannel):
            self._channel.walk()

    def disconnect(self) -> None:
        """Let go of the other slot. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            self._do(channel.close())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def inline(function: Callable[[], T], /) -> T:
    """Run blocking work where it is asked for: nothing else waits in this loop."""
    return function()
