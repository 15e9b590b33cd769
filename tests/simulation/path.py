"""The path of bulk bytes between two workers: extents at a bandwidth, and what such a path may do to them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.simulation.trace import Trace
from tests.simulation.weather import Dice, Weather
from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent

CONNECT_S = (0.001, 0.05)
PULL_S = (0.002, 0.1)
STALL_S = 12.0
"""Longer than a transfer may take, now and then."""


@dataclass(slots=True, kw_only=True)
class Fabric:
    """What may be read by whom, in one run. Memory that was mapped stays readable when its process is dead."""

    weather: Weather
    trace: Trace
    exports: dict[bytes, Arena] = field(default_factory=dict)


class SimPath:
    """One worker's end of the fabric (a ``Transport``)."""

    name = "sim"

    def __init__(self, fabric: Fabric, owner: str, has_power: Callable[[], bool]) -> None:
        self._fabric = fabric
        self._owner = owner
        self._has_power = has_power
        self._given = 0

    async def export(self, arena: Arena) -> bytes:
        self._given += 1
        ticket = f"{self._owner}/{self._given}".encode()
        self._fabric.exports[ticket] = arena
        return ticket

    async def withdraw(self, ticket: bytes) -> None:
        self._fabric.exports.pop(ticket, None)

    async def connect(self, ticket: bytes) -> "SimChannel":
        await asyncio.sleep(self._fabric.weather.dice("connect").between(*CONNECT_S))
        arena = self._fabric.exports.get(ticket)
        if arena is None:
            raise TransportError("nothing is exported under this ticket")
        return SimChannel(self._fabric, arena)

    def forget(self) -> None:
        """The process is dead: nobody connects to it any more."""
        for ticket in [ticket for ticket in self._fabric.exports if ticket.startswith(f"{self._owner}/".encode())]:
            del self._fabric.exports[ticket]


class SimChannel:
    """A way to one arena."""

    def __init__(self, fabric: Fabric, arena: Arena) -> None:
        self._fabric = fabric
        self._source: Arena | None = arena
        self._held: memoryview | None = None
        self._writing: asyncio.Task[None] | None = None

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        weather = self._fabric.weather
        if self._source is None:
            raise TransportError("the channel is closed")
        if dice := weather.strikes("path_stalls"):
            await asyncio.sleep(dice.between(0.0, STALL_S))
        duration = weather.dice("pull").between(*PULL_S)
        torn = weather.strikes("torn")
        for number, extent in enumerate(extents):
            await asyncio.sleep(duration / len(extents))
            if torn and number == len(extents) // 2:
                raise TransportError("the path broke half-way")
            self._copy(extent, into)
        if dice := weather.strikes("corrupt"):
            _flip(extents, into, dice)
        if dice := weather.strikes("late_write"):
            self._held = into[:]
            self._writing = asyncio.create_task(self._write_late(self._held, dice))

    async def close(self) -> None:
        """Let go. A write that is still under way is waited for: then the slot is nobody's."""
        self._source = None
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.gather(writing, return_exceptions=True)

    async def _write_late(self, window: memoryview, dice: Dice) -> None:
        """Go on writing what nobody waits for any more. The window cannot be closed meanwhile."""
        try:
            await asyncio.sleep(dice.between(0.0, 1.0))
            window[dice.below(64)] ^= 0xFF
        finally:
            window.release()

    def _copy(self, extent: Extent, into: memoryview) -> None:
        if self._source is None:
            raise TransportError("the channel was closed in the middle")
        here, there = np.frombuffer(into, dtype=np.uint8), self._source.memory
        here[extent.offset : extent.end] = there[extent.offset : extent.end]


def _flip(extents: Sequence[Extent], into: memoryview, dice: Dice) -> None:
    if not extents:
        return  # all of it was there already
    extent = extents[dice.below(len(extents))]
    into[extent.offset + dice.below(extent.length)] ^= 1 << dice.below(8)
