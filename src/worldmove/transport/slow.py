"""A path that takes its time: before each piece it waits, now shorter and now longer. For trials."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.errors import TransportError
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.transport.base import Channel, Transport
from worldmove.transport.pieces import cut
from worldmove.transport.wrappers import Wrapped, pull_to_device


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """How long each piece is held back, in seconds: drawn evenly between the two."""

    least_s: float = 0.0
    most_s: float = 0.01
    piece_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not (0 <= self.least_s <= self.most_s and self.piece_bytes > 0):
            raise TransportError("the shortest delay comes first, none is negative, and a piece has bytes")


class Slow(Wrapped):
    """Wraps a path: everything arrives and is right, and later."""

    def __init__(self, inner: Transport, *, rng: random.Random, delay: Delay | None = None) -> None:
        super().__init__(inner, f"slow-{inner.name}")
        self._rng = rng
        self._delay = delay or Delay()

    async def connect(self, ticket: bytes) -> "SlowChannel":
        """Connect. Raises TransportError."""
        return SlowChannel(await self._inner.connect(ticket), self._rng, self._delay)


class SlowChannel:
    """Waits, then pulls, piece by piece."""

    def __init__(self, inner: Channel, rng: random.Random, delay: Delay) -> None:
        self._inner = inner
        self._rng = rng
        self._delay = delay

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent, piece by piece. Raises TransportError."""
        for piece in cut(extents, self._delay.piece_bytes):
            await asyncio.sleep(self._rng.uniform(self._delay.least_s, self._delay.most_s))
            await self._inner.pull([piece], into)

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to a device, piece by piece. Raises TransportError."""
        for piece in cut(extents, self._delay.piece_bytes):
            await asyncio.sleep(self._rng.uniform(self._delay.least_s, self._delay.most_s))
            await pull_to_device(self._inner, [piece], into)

    async def close(self) -> None:
        """Release the wrapped channel. Idempotent."""
        await self._inner.close()
