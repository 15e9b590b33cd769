"""What each of a worker's own paths carries, measured before its hello: from this process's memory to itself.

Both ends are one process here, and all workers run on one host: a pair of two processes is not slower than this. What a
path between two hosts carries is not known from it; the moves over it are measured (``fleet.moving.path_rate``).
"""

from collections.abc import Callable, Mapping

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.transport.base import Transport
from worldmove.units import MIB

SAMPLE_BYTES = 4 * MIB


async def path_rates(transports: Mapping[str, Transport], clock: Callable[[], float]) -> dict[str, float]:
    """Return the bytes per second of each path by ``NAME_bytes_per_s``. One that fails has none."""
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
