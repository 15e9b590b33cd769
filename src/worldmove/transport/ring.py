"""The ring of a staged path: host memory that two processes share and have both pinned, in buffers of one size.

The source makes it, for one other process alone: what that may read in it is what it has asked for. Pinning takes tens
of milliseconds and other calls of the device wait for it, so a ring that is let go of lies ready for the next time.
"""

import fcntl
import mmap
import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.state.memory import MemoryKit, Part
from worldmove.transport.shortage import unopened
from worldmove.units import ALIGNMENT_BYTES, MIB, PAGE_BYTES

IDENTITY_BYTES = 16
# The standard library of Python 3.11 does not name these.
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 0x01, 0x02, 0x04


class RingShape(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How large it is."""

    buffer_bytes: Annotated[int, msgspec.Meta(ge=PAGE_BYTES, le=256 * MIB, multiple_of=PAGE_BYTES)] = 16 * MIB
    """One copy's length: long against what its ends cost, short against the state, for its two ways overlap."""
    num_buffers: Annotated[int, msgspec.Meta(ge=2, le=64)] = 8
    """Two are being copied and two wait at each end, and what is left bridges a thread that comes late."""

    @property
    def num_bytes(self) -> int:
        """All of it."""
        return self.buffer_bytes * self.num_buffers


class Ring:
    """One process's map of a ring, pinned until ``release``."""

    def __init__(self, *, identity: bytes, shape: RingShape, mapping: mmap.mmap, kit: MemoryKit) -> None:
        """Pin the map. Raises TransportError."""
        self.identity = identity
        self.shape = shape
        self._mapping = mapping
        self._address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
        self._unpin = kit.pin(Part(self._address, shape.num_bytes))

    def at(self, number: int, place: int) -> int:
        """Return the address of a place in the buffer of a load's number."""
        return self._address + number % self.shape.num_buffers * self.shape.buffer_bytes + place

    def release(self) -> None:
        """Unpin and unmap it. Nothing may be copied from it or to it any more. Idempotent. Raises TransportError."""
        if not self._mapping.closed:
            self._unpin()
            self._mapping.close()


class OwnRing(Ring):
    """A source's, with the descriptor that another process maps it by."""

    def __init__(self, *, identity: bytes, shape: RingShape, kit: MemoryKit) -> None:
        """Take memory of the system and pin it. Raises TransportError."""
        try:
            self.descriptor = os.memfd_create("worldmove-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            raise TransportError(f"there is no memory for a ring: {error}") from error
        try:
            os.ftruncate(self.descriptor, shape.num_bytes)
            # Whoever maps memory that shrinks is killed by reading it.
            fcntl.fcntl(self.descriptor, _F_ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
            mapping = _mapped(self.descriptor, shape)
            super().__init__(identity=identity, shape=shape, mapping=mapping, kit=kit)
        except BaseException:
            os.close(self.descriptor)
            raise

    def release(self) -> None:
        """Give it back. Idempotent. Raises TransportError."""
        super().release()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def opened_ring(identity: bytes, shape: RingShape, descriptor: int, kit: MemoryKit) -> Ring:
    """Map another process's ring, pin it, and close the descriptor. Raises TransportError."""
    try:
        if os.fstat(descriptor).st_size != shape.num_bytes or not _is_sealed(descriptor):
            raise TransportError(f"the source's ring is not {shape.num_bytes} bytes that stay")
        return Ring(identity=identity, shape=shape, mapping=_mapped(descriptor, shape), kit=kit)
    except OSError as error:
        raise unopened(error, "the source's ring cannot be mapped") from error
    finally:
        os.close(descriptor)


def _is_sealed(descriptor: int) -> bool:
    return bool(fcntl.fcntl(descriptor, _F_GET_SEALS) & _SEAL_SHRINK)


def _mapped(descriptor: int, shape: RingShape) -> mmap.mmap:
    # Both ends map it for writing, for not every driver pins what may only be read. It holds but what the one other
    # process has asked for, and whatever comes out of it is verified.
    try:
        mapping = mmap.mmap(descriptor, shape.num_bytes)
        mapping.madvise(mmap.MADV_DONTFORK)
    except OSError as error:
        raise unopened(error, "there is no memory for a ring") from error
    return mapping


class Rings:
    """The rings that lie ready, each under a key, the one used last at the end."""

    def __init__(self, most: int) -> None:
        """``most``: how many are kept."""
        self._most = most
        self._ready: list[tuple[Hashable, Ring]] = []

    def take(self, key: Hashable) -> Ring | None:
        """Return a ring that lies ready under a key, for the caller alone."""
        for index, (other, ring) in enumerate(self._ready):
            if other == key:
                del self._ready[index]
                return ring
        return None

    def keep(self, key: Hashable, ring: Ring) -> Sequence[Ring]:
        """Let a ring lie ready; return what is to be released instead."""
        self._ready.append((key, ring))
        num_old = max(len(self._ready) - self._most, 0)
        old, self._ready = self._ready[:num_old], self._ready[num_old:]
        return [each for _, each in old]

    def clear(self) -> Sequence[Ring]:
        """Return all, to be released."""
        rings, self._ready = [each for _, each in self._ready], []
        return rings


Load = Sequence[tuple[int, Extent]]
"""What one buffer carries: places in it, and the extents that lie there."""


def loads(runs: Sequence[Extent], buffer_bytes: int) -> Iterator[Load]:
    """Cut runs into loads of one buffer each. Both ends come to the same.

    A place has its extent's remainder modulo 256: copies are fastest between addresses that are alike.
    """
    load: list[tuple[int, Extent]] = []
    end = 0
    for run in runs:
        offset = run.offset
        while offset < run.end:
            place = end + (offset - end) % ALIGNMENT_BYTES
            if place >= buffer_bytes:
                yield load
                load, end = [], 0
                continue
            length = min(buffer_bytes - place, run.end - offset)
            load.append((place, Extent(offset=offset, length=length)))
            offset, end = offset + length, place + length
    if load:
        yield load
