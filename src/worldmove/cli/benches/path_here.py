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
        early = self.ready_early((), arena, nonce)
        return None if early is None else early()(extents)

    def ready_early(
        self, extents: Sequence[Extent], arena: AnyArena, nonce: bytes | None = None
    ) -> Callable[[], Early] | None:
        """Make ready to bring extents that may not be all; return what begins that, and returns what begins the rest.

        None where the path cannot begin without waiting. Raises TransportError.
        """
        channel, window = self._channel, open_window(arena)
        if not isinstance(channel, PromptChannel) or not isinstance(window, DeviceWriteWindow):
            return None
        return _Arrival(channel, window, None if nonce is None else number_of(nonce)).ready(extents)

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


class _Arrival:
    """Copies through one window, as ``move.arrival`` has them."""

    def __init__(self, channel: PromptChannel, window: DeviceWriteWindow, number: int | None) -> None:
        self._channel = channel
        self._window = window
        self._number = number

    def ready(self, extents: Sequence[Extent]) -> Callable[[], Early]:
        start = self._window.ready(self._channel, extents) if extents else None

        def begin() -> Early:
            if start is not None:
                start()
            if self._number is not None:
                self._channel.tell_read(early_number(self._number))
            return self._rest

        return begin

    def _rest(self, extents: Sequence[Extent]) -> Callable[[], None] | None:
        started = self._window.start(self._channel, extents)
        if self._number is not None:
            self._channel.tell_read(self._number)
        return None if started is None else lambda: self._landed(started)

    def _landed(self, started: PendingCopy) -> None:
        started.wait()
        self._window.close()


async def inline(function: Callable[[], T], /) -> T:
    """Run blocking work where it is asked for: nothing else waits in this loop."""
    return function()
