"""A path of a settable speed: any of the others, slowed down to it. For trials, and for the page's slider.

Its name says the speed and what it slows down: ``throttled-1gbit-shm``, ``throttled-2.5mbit-tcp``.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from worldmove.errors import TransportError
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.transport.base import Channel, Transport
from worldmove.transport.link_speed import limit_of
from worldmove.transport.pieces import batches
from worldmove.transport.wrappers import Wrapped, pull_to_device

PIECE_S = 0.01
"""How long one piece is on its way: short against what is measured of it, long against a timer's grain."""
LEAST_PIECE_BYTES = 64 << 10
MOST_PIECE_BYTES = 64 << 20
IDLE_S = 0.001
"""Between two pieces; after a longer time the path has been idle."""


class WithThrottled(Mapping[str, Transport]):
    """Paths by their names, each of them at any speed as well."""

    def __init__(self, paths: Mapping[str, Transport]) -> None:
        self._paths = paths

    def __getitem__(self, name: str) -> Transport:
        limit = limit_of(name)
        if limit is None:
            return self._paths[name]
        rate, inner = limit
        return Throttled(self._paths[inner], rate_bytes_per_s=rate, name=name)

    def __iter__(self) -> Iterator[str]:
        """Only those without a limit: there is no end of the others."""
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class Throttled(Wrapped):
    """A path of ``rate_bytes_per_s`` at most."""

    def __init__(
        self, inner: Transport, *, rate_bytes_per_s: float, piece_bytes: int | None = None, name: str = ""
    ) -> None:
        if rate_bytes_per_s <= 0:
            raise TransportError("a path that is slowed down still carries something")
        super().__init__(inner, name or f"throttled-{inner.name}")
        self._rate_bytes_per_s = rate_bytes_per_s
        fitting = min(max(int(rate_bytes_per_s * PIECE_S), LEAST_PIECE_BYTES), MOST_PIECE_BYTES)
        self._piece_bytes = piece_bytes or fitting

    async def connect(self, ticket: bytes) -> "ThrottledChannel":
        """Connect. Raises TransportError."""
        return ThrottledChannel(await self._inner.connect(ticket), self._rate_bytes_per_s, self._piece_bytes)


class Pace:
    """How long bytes take at a rate. What a timer has overslept is made up for by the bytes that follow at once."""

    def __init__(self, rate_bytes_per_s: float) -> None:
        self._rate_bytes_per_s = rate_bytes_per_s
        self._overslept_s = 0.0
        self._ended_at = 0.0

    def begin(self) -> float:
        """Return when bytes begin to travel; a path that was idle has nothing to make up for."""
        now = asyncio.get_running_loop().time()
        if now - self._ended_at > IDLE_S:
            self._overslept_s = 0.0
        return now

    async def over(self, num_bytes: int, begun: float) -> None:
        """Wait until the time of bytes that began to travel then is over."""
        loop = asyncio.get_running_loop()
        due = begun - self._overslept_s + num_bytes / self._rate_bytes_per_s
        if due > (now := loop.time()):
            await asyncio.sleep(due - now)
            self._overslept_s = max(0.0, loop.time() - due)
        else:
            self._overslept_s = min(self._overslept_s, now - due)
        self._ended_at = loop.time()


class ThrottledChannel:
    """Pulls piece by piece, and waits after each until its time is over."""

    def __init__(self, inner: Channel, rate_bytes_per_s: float, piece_bytes: int) -> None:
        self._inner = inner
        self._pace = Pace(rate_bytes_per_s)
        self._piece_bytes = piece_bytes

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent, at the path's rate. Raises TransportError."""
        for batch in batches(extents, self._piece_bytes):
            begun = self._pace.begin()
            await self._inner.pull(batch, into)
            await self._over(batch, begun)

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to a device, at the path's rate. Raises TransportError."""
        for batch in batches(extents, self._piece_bytes):
            begun = self._pace.begin()
            await pull_to_device(self._inner, batch, into)
            await self._over(batch, begun)

    async def close(self) -> None:
        """Release the wrapped channel. Idempotent."""
        await self._inner.close()

    async def _over(self, batch: Sequence[Extent], begun: float) -> None:
        await self._pace.over(sum(extent.length for extent in batch), begun)
