"""Paths that wrap another, and those of them that lie. For trials, and for *Break it*."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.transport.base import Channel, DeviceChannel, DeviceTransport, Transport


class Wrapped:
    """A transport whose exports are those of another, which it wraps on the destination's side."""

    def __init__(self, inner: Transport, name: str) -> None:
        self.name = name
        self._inner = inner

    async def export(self, arena: Arena) -> bytes:
        """Export as the wrapped transport does: its tickets serve both."""
        return await self._inner.export(arena)

    async def export_device(self, arena: DeviceArena) -> bytes:
        """Export a slot on a device, if the wrapped transport can. Raises TransportError."""
        if not isinstance(self._inner, DeviceTransport):
            raise TransportError(f"{self.name} reads no device's memory")
        return await self._inner.export_device(arena)

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Idempotent."""
        await self._inner.withdraw(ticket)


async def pull_to_device(inner: Channel, extents: Sequence[Extent], into: DeviceWindow) -> None:
    """Pull through a wrapped channel to a device, if it can. Raises TransportError."""
    if not isinstance(inner, DeviceChannel):
        raise TransportError("this path brings nothing to a device")
    await inner.pull_to_device(extents, into)


class Damage(Enum):
    """What a corrupting path does to one pull."""

    FLIP = "one bit arrives flipped"
    DROP = "some bytes do not arrive"
    SWAP = "two pieces arrive in each other's place"
    STALE = "some bytes arrive as they were in the pull before"
    SHORT = "the path breaks half-way"


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagePlan:
    """What goes wrong, and how much of it is hit. Where is drawn anew for every pull."""

    damage: Damage = Damage.FLIP
    num_bytes: int = 64


class Corrupting(Wrapped):
    """A path that damages every pull, says nothing, and reports success."""

    def __init__(self, inner: Transport, *, rng: random.Random, plan: DamagePlan | None = None) -> None:
        super().__init__(inner, f"corrupting-{inner.name}")
        self._rng = rng
        self._plan = plan or DamagePlan()
        self._before = b""

    async def connect(self, ticket: bytes) -> "CorruptingChannel":
        """Connect. Raises TransportError."""
        return CorruptingChannel(await self._inner.connect(ticket), self)

    async def damage(self, inner: Channel, extents: Sequence[Extent], into: memoryview) -> None:
        """Pull through ``inner``, then damage what came."""
        if not extents:
            await inner.pull(extents, into)
            return
        target = self._pick(extents, 1 if self._plan.damage is Damage.FLIP else self._plan.num_bytes)
        untouched = bytes(into[target.offset : target.end])
        if self._plan.damage is Damage.SHORT:
            await inner.pull([Extent(offset=extents[0].offset, length=extents[0].length // 2)], into)
            raise TransportError("the path broke half-way")
        await inner.pull(extents, into)
        arrived = bytes(into[target.offset : target.end])
        into[target.offset : target.end] = self._changed(arrived, untouched)
        self._before = arrived

    async def damage_on_device(self, inner: Channel, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Pull to a device through ``inner``, then damage what came."""
        if not extents:
            await pull_to_device(inner, extents, into)
            return
        target = self._pick(extents, 1 if self._plan.damage is Damage.FLIP else self._plan.num_bytes)
        untouched = into.read(target).tobytes()
        if self._plan.damage is Damage.SHORT:
            await pull_to_device(inner, [Extent(offset=extents[0].offset, length=extents[0].length // 2)], into)
            raise TransportError("the path broke half-way")
        await pull_to_device(inner, extents, into)
        arrived = into.read(target).tobytes()
        into.write(target.offset, np.frombuffer(self._changed(arrived, untouched), dtype=np.uint8))
        self._before = arrived

    def _changed(self, arrived: bytes, untouched: bytes) -> bytes:
        """Return as many bytes, and others."""
        match self._plan.damage:
            case Damage.FLIP:
                changed = bytes([arrived[0] ^ 1 << self._rng.randrange(8)])
            case Damage.DROP:
                changed = untouched
            case Damage.SWAP:
                changed = arrived[len(arrived) // 2 :] + arrived[: len(arrived) // 2]
            case _:
                changed = self._before[: len(arrived)].ljust(len(arrived), b"\0")
        # What happens to be equal would be no damage, and the trial would prove nothing.
        return changed if changed != arrived else bytes([arrived[0] ^ 1, *arrived[1:]])

    def _pick(self, extents: Sequence[Extent], num_bytes: int) -> Extent:
        weights = [extent.length for extent in extents]
        (extent,) = self._rng.choices(list(extents), weights)
        length = min(num_bytes, extent.length)
        return Extent(offset=extent.offset + self._rng.randrange(extent.length - length + 1), length=length)


class CorruptingChannel:
    """A channel that lies."""

    def __init__(self, inner: Channel, path: Corrupting) -> None:
        self._inner = inner
        self._path = path

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent, and damage some of it. Raises TransportError."""
        await self._path.damage(self._inner, extents, into)

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to a device, and damage some of it there. Raises TransportError."""
        await self._path.damage_on_device(self._inner, extents, into)

    async def close(self) -> None:
        """Release the wrapped channel. Idempotent."""
        await self._inner.close()
