"""What a path is lent of a device slot's memory: it may start copies into it, and never learns where it lies."""

from collections.abc import Sequence

from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.state.memory import HostBytes, MemoryKit, Part, PendingCopy, Piece


class DeviceWindow:
    """Open from its making until ``close``. Whatever is written goes through it, and none of it is under way after."""

    def __init__(self, kit: MemoryKit, part: Part) -> None:
        self.kit = kit
        self._part: Part | None = part
        self._started: list[PendingCopy] = []

    @property
    def size(self) -> int:
        """How many bytes may be written. Raises TransportError once it is closed."""
        return self._open().length

    def start_copy(self, source: int, extents: Sequence[Extent]) -> PendingCopy:
        """Begin to copy extents of memory at the address ``source`` to the same offsets here. Raises TransportError."""
        part = self._open()
        for extent in extents:
            self._check(extent)
        pieces = [Piece(source + e.offset, part.address + e.offset, e.length) for e in extents if e.length]
        pending = self.kit.start_copy(pieces)
        self._started = [other for other in self._started if not other.is_done()] + [pending]
        return pending

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

    def _check(self, extent: Extent) -> None:
        if extent.offset < 0 or extent.length < 0 or extent.end > self._open().length:
            raise TransportError(f"bytes {extent.offset} to {extent.end} are not all in the slot")

    def _open(self) -> Part:
        if self._part is None:
            raise TransportError("the window is closed: nothing more may be written")
        return self._part
