"""A path that fails now and then: it breaks, or it falls silent. It never lies. For trials."""

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
class LossPlan:
    """How likely it is, for each piece, that the path fails there. A path that failed does not come back."""

    cut: float = 0.05
    """The piece does not come, and the path says that it broke."""
    silence: float = 0.0
    """The piece does not come, and the path says nothing: who waits must know for how long."""
    piece_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if not (0 <= self.cut <= 1 and 0 <= self.silence <= 1 - self.cut and self.piece_bytes > 0):
            raise TransportError("chances lie between 0 and 1, and so does their sum; a piece has bytes")


class Lossy(Wrapped):
    """Wraps a path: what arrives is right, and not everything arrives."""

    def __init__(self, inner: Transport, *, rng: random.Random, plan: LossPlan | None = None) -> None:
        super().__init__(inner, f"lossy-{inner.name}")
        self._rng = rng
        self._plan = plan or LossPlan()

    async def connect(self, ticket: bytes) -> "LossyChannel":
        """Connect. Raises TransportError."""
        return LossyChannel(await self._inner.connect(ticket), self._rng, self._plan)


class LossyChannel:
    """Pulls piece by piece until one is lost."""

    def __init__(self, inner: Channel, rng: random.Random, plan: LossPlan) -> None:
        self._inner = inner
        self._rng = rng
        self._plan = plan
        self._broken = False

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent, as far as the path holds. Raises TransportError; or never ends, until cancelled."""
        for piece in cut(extents, self._plan.piece_bytes):
            await self._luck(piece)
            await self._inner.pull([piece], into)

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to a device, as far as the path holds. Raises TransportError, or never ends."""
        for piece in cut(extents, self._plan.piece_bytes):
            await self._luck(piece)
            await pull_to_device(self._inner, [piece], into)

    async def close(self) -> None:
        """Release the wrapped channel. Idempotent."""
        await self._inner.close()

    async def _luck(self, piece: Extent) -> None:
        drawn = self._rng.random()
        if self._broken or drawn < self._plan.cut:
            self._broken = True
            raise TransportError(f"the path broke before byte {piece.offset}")
        if drawn < self._plan.cut + self._plan.silence:
            self._broken = True
            await asyncio.Event().wait()
