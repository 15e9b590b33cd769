"""A device's slot over TCP: through host memory, piece by piece, at both ends.

    source       device -> host memory, the next piece while this one is sent
    destination  what is received -> device, and then the next

Slower than a map, and there wherever two processes reach each other: what is left when every other path has failed.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.memory import HostBytes
from worldmove.transport.base import Blocking
from worldmove.transport.pieces import cut
from worldmove.transport.tcp_stream import Stream

PIECE_BYTES = 8 << 20


async def send_runs(stream: Stream, runs: Sequence[Extent], arena: DeviceArena, blocking: Blocking) -> None:
    """Send some runs of a device's slot, in order. Raises TransportError."""
    held = np.empty(0, dtype=np.uint8)
    for piece in cut(runs, PIECE_BYTES):
        held = await _send_and_read(stream, held, partial(arena.read, piece.offset, piece.length), blocking)
    await stream.send([held.data])


async def receive_runs(stream: Stream, runs: Sequence[Extent], into: DeviceWindow, blocking: Blocking) -> None:
    """Take some runs, in order, to the same offsets of a device's slot. Raises TransportError.

    When it has ended, however it did, nothing of it writes any more: ``blocking`` waits for the piece in hand.
    """
    for piece in cut(runs, PIECE_BYTES):
        page = np.empty(piece.length, dtype=np.uint8)
        await stream.receive_into([page.data])
        await blocking(partial(into.write, piece.offset, page))


async def _send_and_read(
    stream: Stream, held: HostBytes, read: Callable[[], HostBytes], blocking: Blocking
) -> HostBytes:
    """Send what is held while the next piece is read. Raises TransportError."""
    try:
        async with asyncio.TaskGroup() as beside:
            reading = beside.create_task(_read(read, blocking))
            await stream.send([held.data])
    except BaseExceptionGroup as error:
        raise error.exceptions[0] from error
    return reading.result()


async def _read(read: Callable[[], HostBytes], blocking: Blocking) -> HostBytes:
    return await blocking(read)
