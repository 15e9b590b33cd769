"""Copying extents between two memories of this process, in pieces that can be cancelled in between."""

from collections.abc import Iterator, Sequence

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.state.runs import Runs
from worldmove.transport.base import Blocking

PIECE_BYTES = 32 << 20
"""Large enough that a small world is one hop off the loop, small enough that a cancel waits a few milliseconds."""


def check_extents(extents: Sequence[Extent], source_bytes: int, target_bytes: int) -> None:
    """Raise TransportError unless every extent lies inside both memories."""
    runs = Runs.of(extents)
    wrong = (runs.offsets < 0) | (runs.lengths < 0) | (runs.ends > min(source_bytes, target_bytes))
    if wrong.any():
        extent = runs[int(wrong.argmax())]
        raise TransportError(f"bytes {extent.offset} to {extent.end} are not all in both memories")


async def copy_in_pieces(source: memoryview, extents: Sequence[Extent], into: memoryview, blocking: Blocking) -> None:
    """Copy each extent to the same offset of ``into``, off the loop. Raises TransportError.

    When it has ended, however it did, no piece is still being copied: ``blocking`` waits for the one in hand.
    """
    check_extents(extents, len(source), len(into))
    for batch in batches(extents, PIECE_BYTES):
        await blocking(lambda batch=batch: copy_extents(source, batch, into))  # type: ignore[misc]


def copy_extents(source: memoryview, extents: Sequence[Extent], into: memoryview) -> None:
    """Copy, letting other threads run meanwhile: numpy gives the interpreter's lock away, a slice does not."""
    there, here = np.frombuffer(source, dtype=np.uint8), np.frombuffer(into, dtype=np.uint8)
    for extent in extents:
        np.copyto(here[extent.offset : extent.end], there[extent.offset : extent.end])


def cut(extents: Sequence[Extent], piece_bytes: int) -> Iterator[Extent]:
    """Cut extents into pieces of at most ``piece_bytes``."""
    for extent in extents:
        for offset in range(extent.offset, extent.end, piece_bytes):
            yield Extent(offset=offset, length=min(piece_bytes, extent.end - offset))


def batches(extents: Sequence[Extent], batch_bytes: int) -> Iterator[Runs]:
    """Gather extents until they are ``batch_bytes``, and cut what is more: one pull for many small extents."""
    return Runs.of(extents).batches(batch_bytes)
