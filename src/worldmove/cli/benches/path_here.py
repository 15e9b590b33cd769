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
from worldmove.move.device_path import DeviceWriteWindow, export_slot, open_window
from worldmove.state.arena import AnyArena
from worldmove.state.extent import Extent
from worldmove.state.gate import early_number, number_of
from worldmove.state.memory import MemoryKit, PendingCopy
from worldmove.transport.base import Channel, PromptChannel, Transport
from worldmove.transport.tcp import TcpConfig
from worldmove.worker.transports import LocalTransports

T = TypeVar("T")
Early = Callable[[Sequence[Extent]], Callable[[], None] | None]
"""Is given what else is to come, and returns what waits for all of it."""


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

    def start_pull(
        self, extents: Sequence[Extent], arena: AnyArena, nonce: bytes | None = None
    ) -> Callable[[], None] | None:
        """Begin to bring extents into a slot, through a window through which nothing more comes; return what waits.

        ``nonce``: of the attempt in which the source's gate is to say that all was read. None where the path cannot
        begin without waiting. Raises TransportError.
        """
        early = self.start_early((), arena, nonce)
        return None if early is None else early(extents)

    def start_early(self, extents: Sequence[Extent], arena: AnyArena, nonce: bytes | None = None) -> "Early | None":
        """Begin to bring extents that may not be all; return what begins the rest, and returns what waits for both.

        None where the path cannot begin without waiting. Raises TransportError.
        """
        channel, window = self._channel, open_window(arena)
        if channel is None or not isinstance(window, DeviceWriteWindow):
            return None
        if extents and window.begin(channel, extents) is None:
            return None
        if nonce is not None and isinstance(channel, PromptChannel):
            channel.tell_read(early_number(number_of(nonce)))

        def rest(others: Sequence[Extent]) -> Callable[[], None] | None:
            started = window.start(channel, others)
            if nonce is not None and isinstance(channel, PromptChannel):
                channel.tell_read(number_of(nonce))
            return None if started is None else _landed(started, window)

        return rest

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


def _landed(started: PendingCopy, window: DeviceWriteWindow) -> Callable[[], None]:
    def landed() -> None:
        started.wait()
        window.close()

    return landed


async def inline(function: Callable[[], T], /) -> T:
    """Run blocking work where it is asked for: nothing else waits in this loop."""
    return function()
