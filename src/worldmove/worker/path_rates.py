"""What each of a worker's own paths carries, measured before its hello: from this process's memory to itself.

Both ends are one process here, and all workers run on one host: a pair of two processes is not slower than this. What a
path between two hosts carries is not known from it; the moves over it are measured (``fleet.moving.path_rate``).
"""

from collections.abc import Callable, Mapping

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import DeviceChannel, DeviceTransport, Transport
from worldmove.units import MIB

SAMPLE_BYTES = 4 * MIB
DEVICE_SAMPLE_BYTES = 256 * MIB
LITTLE = 16
"""The part of a device's sample that says what a pull takes whatever its bytes: launches, and turns of threads."""
NUM_PULLS = 3
"""Of each size: the quickest counts, since whatever else comes in between makes none quicker."""


async def path_rates(
    transports: Mapping[str, Transport], clock: Callable[[], float], kit: MemoryKit | None = None
) -> dict[str, float]:
    """Return the bytes per second of each path by ``NAME_bytes_per_s``. One that fails has none.

    With a kit, between two slots on its device; of the paths for trials, which wrap others, then none is measured.
    """
    if kit is not None:
        return await _device_path_rates(transports, clock, kit)
    arena = Arena(SAMPLE_BYTES, "worldmove-sample")
    rates = {}
    try:
        arena.poison()  # touched, every page
        for name, transport in transports.items():
            try:
                rates[f"{name}_bytes_per_s"] = await _rate(transport, arena, clock)
            except TransportError:
                continue  # unknown: a move over it is refused, and says so
    finally:
        arena.close()
    return rates


async def _rate(transport: Transport, arena: Arena, clock: Callable[[], float]) -> float:
    """Pull a sample twice; the second time counts, when its pages are there. Raises TransportError."""
    into, whole = memoryview(bytearray(SAMPLE_BYTES)), [Extent(offset=0, length=SAMPLE_BYTES)]
    ticket = await transport.export(arena)
    try:
        channel = await transport.connect(ticket)
        try:
            await channel.pull(whole, into)
            begin = clock()
            await channel.pull(whole, into)
            return SAMPLE_BYTES / max(clock() - begin, 1e-9)
        finally:
            await channel.close()
    finally:
        await transport.withdraw(ticket)


async def _device_path_rates(
    transports: Mapping[str, Transport], clock: Callable[[], float], kit: MemoryKit
) -> dict[str, float]:
    source, target = (DeviceArena(DEVICE_SAMPLE_BYTES, "worldmove-sample", kit) for _ in range(2))
    rates = {}
    try:
        source.poison()
        for name, transport in transports.items():
            if isinstance(transport, DeviceTransport) and "-" not in name:
                try:
                    rates[f"{name}_bytes_per_s"] = await _device_rate(transport, source, target, clock)
                except TransportError:
                    continue
    finally:
        source.close()
        target.close()
    return rates


async def _device_rate(
    transport: DeviceTransport, source: DeviceArena, target: DeviceArena, clock: Callable[[], float]
) -> float:
    """Pull a sample and a part of it from one slot to another: what the rest of it took. Raises TransportError."""
    ticket = await transport.export_device(source)
    try:
        channel = await transport.connect(ticket)
        try:
            if not isinstance(channel, DeviceChannel):
                raise TransportError("this path brings nothing to a device")
            little = DEVICE_SAMPLE_BYTES // LITTLE
            whole_s = await _quickest(channel, target, DEVICE_SAMPLE_BYTES, clock)
            little_s = await _quickest(channel, target, little, clock)
            if whole_s > little_s:
                return (DEVICE_SAMPLE_BYTES - little) / (whole_s - little_s)
            return DEVICE_SAMPLE_BYTES / max(whole_s, 1e-9)
        finally:
            await channel.close()
    finally:
        await transport.withdraw(ticket)


async def _quickest(channel: DeviceChannel, target: DeviceArena, num_bytes: int, clock: Callable[[], float]) -> float:
    """Return the seconds of the quickest pull of some bytes; the first one has everything to make ready."""
    extents, took = [Extent(offset=0, length=num_bytes)], list[float]()
    for _ in range(1 + NUM_PULLS):
        begin = clock()
        await channel.pull_to_device(extents, target.lend())
        took.append(clock() - begin)
    return min(took[1:])
