"""What a path is lent of a device slot's memory: it may start copies into it, and never learns where it lies."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.by_id import ById
from worldmove.state.extent import Extent
from worldmove.state.memory import HostBytes, MemoryKit, Part, PendingCopy, Piece
from worldmove.state.runs import Runs

GAP_BYTES = 4096
"""What lies between two runs is copied with them, up to so much: it is the slot's and no leaf's, and one copy of many
megabytes is faster than hundreds that leave some bytes out."""


def joined(extents: Sequence[Extent]) -> Runs:
    """Return runs in order, those that lie near to each other as one. Empty ones are left out."""
    return _joined_once(ById(extents)) if isinstance(extents, tuple) else Runs.of(extents).joined(GAP_BYTES)


# Asked for when an offer is prepared for, and again inside the pause.
@lru_cache(maxsize=8)
def _joined_once(extents: ById[tuple[Extent, ...]]) -> Runs:
    return Runs.of(extents.value).joined(GAP_BYTES)


class DeviceWindow:
    """Open from its making until ``close``. Whatever is written goes through it, and none of it is under way after."""

    def __init__(self, kit: MemoryKit, part: Part) -> None:
        self.kit = kit
        self._part: Part | None = part
        self._started: list[PendingCopy] = []
        self._is_sealed = False

    @property
    def size(self) -> int:
        """How many bytes may be written. Raises TransportError once it is closed."""
        return self._open().length

    def start_copy(self, source: int, extents: Sequence[Extent]) -> PendingCopy:
        """Begin to copy extents of memory at the address ``source`` to the same offsets here. Raises TransportError."""
        return self.ready_copy(source, extents)()

    def ready_copy(self, source: int, extents: Sequence[Extent]) -> Callable[[], PendingCopy]:
        """Lay out what ``start_copy`` begins; return what begins it, once. Both raise TransportError."""
        part = self._open()
        runs = joined(extents)
        wrong = (runs.offsets < 0) | (runs.ends > part.length)
        if wrong.any():
            self._check(runs[int(wrong.argmax())])
        pieces = np.stack((source + runs.offsets, part.address + runs.offsets, runs.lengths), axis=1)

        def begin() -> PendingCopy:
            self._open()
            return self._noted(self.kit.start_pull(pieces))

        return begin

    def start_copy_in(self, runs: Sequence[tuple[int, Extent]]) -> PendingCopy:
        """Begin to copy pinned host memory, from an address for each extent, to the extents' places here.

        Raises TransportError.
        """
        part = self._open()
        for _, extent in runs:
            self._check(extent)
        pieces = [Piece(address, part.address + extent.offset, extent.length) for address, extent in runs]
        return self._noted(self.kit.start_copy_in(pieces))

    def seal(self) -> None:
        """From now on nothing more may be started, written or read. What was started goes on, and comes before every
        fingerprint of what it writes that the kit is asked to begin.
        """
        self._is_sealed = True

    def read(self, extent: Extent) -> HostBytes:
        """Return what lies there, copied to host memory."""
        self._check(extent)
        return self.kit.read(Part(self._open().address + extent.offset, extent.length))

    def write(self, offset: int, data: HostBytes) -> None:
        """Copy host bytes there."""
        self._check(Extent(offset=offset, length=len(data)))
        self.kit.write(self._open().address + offset, data)

    def close(self) -> None:
        """End it. Raises TransportError if a copy is still under way: what it writes late would be played."""
        part, self._part = self._part, None
        if part is not None and not all(copy.is_done() for copy in self._started):
            raise TransportError("the path still copies into the memory that it was given to write to")

    def _noted(self, pending: PendingCopy) -> PendingCopy:
        self._started = [other for other in self._started if not other.is_done()] + [pending]
        return pending

    def _check(self, extent: Extent) -> None:
        if extent.offset < 0 or extent.length < 0 or extent.end > self._open().length:
            raise TransportError(f"bytes {extent.offset} to {extent.end} are not all in the slot")

    def _open(self) -> Part:
        if self._part is None or self._is_sealed:
            raise TransportError("the window is closed: nothing more may be written")
        return self._part
