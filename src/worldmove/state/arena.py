"""One slot's memory, and where in it a state's storages lie.

A placement has the arena offset of every storage of a manifest. Whoever receives the arena's descriptor can map
it for reading only: the seals are in the kernel's hands, not in ours.
"""

import fcntl
import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worldmove.errors import ManifestError, StateRefused
from worldmove.state.array import Memory
from worldmove.state.by_id import ById
from worldmove.state.capture import Capture, DeviceStorage, HostStorage, Storage, storage_at
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.geometry import NO_RUNS, merge, to_extents
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import build
from worldmove.state.memory import MemoryKit, PendingCopy
from worldmove.state.room import Room
from worldmove.state.storage import StorageRecord
from worldmove.state.tree import NO_TYPES
from worldmove.units import ALIGNMENT_BYTES, MIB, PAGE_BYTES, round_up

__all__ = [
    "AnyArena",
    "Arena",
    "Extent",
    "Gathered",
    "Landing",
    "Placement",
    "adopt",
    "begin_copy",
    "begin_gather",
    "check_placement",
    "extents",
    "extents_of",
    "foreseen",
    "gather",
    "in_place_bytes",
    "landed",
    "landing",
    "materialise",
    "new_arena",
]

Placement = tuple[int, ...]
"""The arena offset of each storage of a manifest, in its order."""

# The standard library of Python 3.11 does not name these.
_F_ADD_SEALS = 1033
_SEALS = 0x01 | 0x02 | 0x04 | 0x10  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE


class Arena:
    """One slot's memory: page-aligned, of a fixed size, shareable by descriptor for reading only."""

    def __init__(self, size: int, name: str) -> None:
        """Take ``size`` bytes (rounded up to whole pages) from the system. ``name`` is for /proc. Raises OSError."""
        self.size = round_up(max(size, 1), PAGE_BYTES)
        self.name = name
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        # Ours is mapped before the seal, so it stays the only writable mapping there can be; a fork gets none.
        mapping = mmap.mmap(self.fd, self.size)
        mapping.madvise(mmap.MADV_DONTFORK)
        self.memory: Memory = np.frombuffer(mapping, dtype=np.uint8)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)

    @property
    def buffer(self) -> memoryview:
        """Its bytes, writable."""
        return self.memory.data

    @property
    def address(self) -> int:
        """Where it begins in this process."""
        return int(self.memory.ctypes.data)

    def poison(self) -> None:
        """Fill it with a fixed pattern that differs from place to place and is nowhere zero."""
        words = self.memory.view(np.uint64)
        per_tile = min(MIB // 8, len(words))
        tile = np.arange(per_tile, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(0xA5A5A5A5A5A5A5A5)
        for number, begin in enumerate(range(0, len(words), per_tile)):
            part = words[begin : begin + per_tile]
            np.bitwise_xor(tile[: len(part)], np.uint64(number * 0xD1B54A32D192ED03 % 2**64), out=part)
            np.bitwise_or(part, np.uint64(0x0101010101010101), out=part)

    def close(self) -> None:
        """Give the descriptor back. The memory stays as long as a tensor or view lies in it, then goes by itself."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self.memory = np.empty(0, dtype=np.uint8)


AnyArena = Arena | DeviceArena


def new_arena(size: int, name: str, kit: MemoryKit | None) -> AnyArena:
    """Make a slot's memory: on the kit's device, or without one in host memory. Raises ArenaFull, OSError."""
    return Arena(size, name) if kit is None else DeviceArena(size, name, kit)


def adopt(capture: Capture, arena: AnyArena) -> Placement:
    """Copy a newly opened state into its arena, every address modulo 256 kept. Raises ArenaFull.

    Whatever lay in the arena is overwritten, but for storages of this very state.
    """
    return gather(capture, arena)


def gather(capture: Capture, arena: AnyArena) -> Placement:
    """Bring into the arena what has left it; storages that lie in it stay. Raises ArenaFull.

    Room that no storage of this capture uses is free: what lay there is state no longer. Host memory of a state
    whose arena is a device's never lies in it: it is *staged* there, anew each time, and its session goes on with it
    where it is.
    """
    gathered = begin_gather(capture, arena)
    gathered.wait()
    return gathered.placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is brought into an arena, or will be when the copies that have begun are over."""

    placement: Placement
    moved: tuple[int, ...] = ()
    """Which storages did not lie there before."""
    started: Sequence[PendingCopy] = ()

    def wait(self) -> None:
        """Return when all of it is there. Raises TransportError if the device has failed."""
        for copy in self.started:
            copy.wait()


def begin_gather(capture: Capture, arena: AnyArena) -> Gathered:
    """Begin what ``gather`` does; on a device, whatever its kit begins after this comes after it. Raises ArenaFull."""
    placement, moving = _placed(capture, arena)
    return Gathered(placement=placement, moved=tuple(moving), started=begin_copy(capture, placement, moving, arena))


def begin_copy(capture: Capture, placement: Placement, which: Sequence[int], arena: AnyArena) -> Sequence[PendingCopy]:
    """Begin to copy some storages of a state to their places in an arena. In host memory it is done at once."""
    if isinstance(arena, DeviceArena):
        return _copy_to_device(capture, placement, which, arena) if which else ()
    for index in which:
        _copy(capture.storages[index], arena, placement[index])
    return ()


def foreseen(capture: Capture, arena: AnyArena) -> Placement:
    """Return where ``gather`` would bring everything, and copy nothing. Raises ArenaFull."""
    return _placed(capture, arena)[0]


def in_place_bytes(capture: Capture, arena: AnyArena) -> int:
    """Return how many bytes of a state lie in an arena already."""
    begin, end = arena.address, arena.address + arena.size
    inside = (each for each in capture.storages if begin <= each.address and each.address + each.num_bytes <= end)
    return sum(extent.length for storage in inside for extent in storage.used)


def _placed(capture: Capture, arena: AnyArena) -> tuple[Placement, list[int]]:
    """Return a place for every storage, and which of them do not lie there. Raises ArenaFull."""
    size, lengths = arena.size, _lengths(ById(capture.manifest.storages))
    addresses = capture.addresses
    places = addresses - arena.address
    ends = places + lengths
    is_inside = (places >= 0) & (ends <= size)
    moving = np.flatnonzero(~is_inside)
    if len(moving):
        kept = np.column_stack((places, ends))[is_inside]
        wanted = np.column_stack((lengths[moving], addresses[moving] % ALIGNMENT_BYTES))
        places[moving] = _found(kept.tobytes(), wanted.tobytes(), size)
    return tuple(places.tolist()), moving.tolist()


@lru_cache(maxsize=8)
def _lengths(storages: ById[tuple[StorageRecord, ...]]) -> NDArray[np.int64]:
    return np.array([storage.num_bytes for storage in storages.value], dtype=np.int64)


# Hundreds of storages that are bound anew at each block take milliseconds; the offer has mostly asked the same.
@lru_cache(maxsize=8)
def _found(kept: bytes, wanted: bytes, size: int) -> NDArray[np.int64]:
    """Return a place beside what is kept (begins and ends) for each of some storages, by lengths and remainders, all
    as the bytes of arrays: looking up hundreds of pairs takes long. Raises ArenaFull.
    """
    room, places = Room(sorted(_pairs(kept)), size), np.zeros(len(wanted) // 16, dtype=np.int64)
    # The largest first: small ones fit into what is left.
    for index, (length, remainder) in sorted(enumerate(_pairs(wanted)), key=lambda each: -each[1][0]):
        places[index] = room.take(length, remainder)
    return places


def _pairs(data: bytes) -> list[tuple[int, int]]:
    return [(first, second) for first, second in np.frombuffer(data, dtype=np.int64).reshape(-1, 2).tolist()]


def extents(manifest: Manifest, placement: Placement) -> tuple[Extent, ...]:
    """Return what must travel, in arena offsets: sorted, disjoint, adjacent ones merged."""
    return _extents(ById(manifest.storages), tuple(placement))


def extents_of(manifest: Manifest, placement: Placement, which: Sequence[int]) -> tuple[Extent, ...]:
    """Return the same of some storages alone. Raises ManifestError for one that there is not."""
    if any(not 0 <= index < len(manifest.storages) for index in which):
        raise ManifestError("a storage is spoken of that there is not")
    some = tuple(manifest.storages[index] for index in which)
    return _extents(ById(some), tuple(placement[index] for index in which))


# Asked for when an offer is prepared for, and again inside the pause.
@lru_cache(maxsize=8)
def _extents(storages: ById[tuple[StorageRecord, ...]], placement: Placement) -> tuple[Extent, ...]:
    pairs = zip(storages.value, placement, strict=True)
    runs = [(at + e.offset, at + e.end) for storage, at in pairs for e in storage.used]
    return to_extents(merge([NO_RUNS, np.array(runs, dtype=np.int64).reshape(-1, 2)]))


def check_placement(manifest: Manifest, placement: Sequence[int], arena_size: int) -> None:
    """Raise ManifestError unless every storage has a place of its own inside the arena."""
    if len(placement) != len(manifest.storages):
        raise ManifestError(f"{len(placement)} places for {len(manifest.storages)} storages")
    end = 0
    for at, index in sorted((at, index) for index, at in enumerate(placement)):
        if at < end:
            raise ManifestError(f"storage {index} at {at} overlaps what ends at {end}")
        end = at + manifest.storages[index].num_bytes
    if end > arena_size:
        raise ManifestError(f"a storage ends at {end}, in an arena of {arena_size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What lies in an arena, or will: a state's storages, and what of them is staged there for host memory."""

    capture: Capture
    staged: tuple[tuple[int, Extent, Memory], ...]
    """Where in the arena some bytes land, where in their storage they belong, and that storage's memory."""
    arena: AnyArena

    def settle(self) -> None:
        """Copy to host memory what was staged. Once, when every byte has landed."""
        if not isinstance(self.arena, DeviceArena) or not self.staged:
            return
        parts = [self.arena.part(place + extent.offset, extent.length) for place, extent, _ in self.staged]
        for (_, extent, memory), data in zip(self.staged, self.arena.kit.read_all(parts), strict=True):
            np.copyto(memory[extent.offset : extent.end], data)


def landing(manifest: Manifest, placement: Placement, arena: AnyArena) -> Landing:
    """Return a state's storages over an arena; its bytes may still be landing. Raises ManifestError."""
    check_placement(manifest, placement, arena.size)
    storages: list[Storage] = []
    staged: list[tuple[int, Extent, Memory]] = []
    for record, at in zip(manifest.storages, placement, strict=True):
        if not isinstance(arena, DeviceArena):
            if record.on_device:
                raise ManifestError("some of the state lies on a device, and this slot lies in host memory")
            storages.append(HostStorage(memory=arena.memory[at : at + record.num_bytes], used=record.used))
        elif record.on_device:
            storages.append(storage_at(arena.address + at, record.num_bytes, [arena.owner], record, arena.kit))
        else:
            memory = _aligned(record.num_bytes, at % ALIGNMENT_BYTES)
            storages.append(HostStorage(memory=memory, used=record.used))
            staged += ((at, extent, memory) for extent in record.used)
    kit = arena.kit if isinstance(arena, DeviceArena) else None
    capture = Capture(manifest=manifest, storages=tuple(storages), kit=kit)
    return Landing(capture=capture, staged=tuple(staged), arena=arena)


def landed(manifest: Manifest, placement: Placement, arena: AnyArena) -> Capture:
    """Return a capture of what lies in an arena, before any tree is made of it. Raises ManifestError."""
    state = landing(manifest, placement, arena)
    state.settle()
    return state.capture


def materialise(manifest: Manifest, placement: Placement, arena: AnyArena, types: Mapping[str, type] = NO_TYPES) -> Any:
    """Make the tree again, over the arena's memory. Raises ManifestError, or StateRefused for a type not known here."""
    return build(landed(manifest, placement, arena), types)


def _aligned(num_bytes: int, remainder: int) -> Memory:
    """Return new host memory at an address with a remainder modulo 256."""
    memory: Memory = np.zeros(num_bytes + 2 * ALIGNMENT_BYTES, dtype=np.uint8)
    begin = (remainder - int(memory.ctypes.data)) % ALIGNMENT_BYTES
    return memory[begin : begin + num_bytes]


def _copy_to_device(
    capture: Capture, placement: Placement, moving: Sequence[int], arena: DeviceArena
) -> Sequence[PendingCopy]:
    """Begin to copy device memory by one launch for all of it, and stage what lies in host memory."""
    lines = _device_runs(ById(capture.manifest.storages))
    goes = np.zeros(len(placement), dtype=np.bool_)
    goes[moving] = True
    which, offsets, lengths = lines[goes[lines[:, 0]]].T
    targets = arena.address + np.array(placement, dtype=np.int64)
    pieces = np.column_stack((capture.addresses[which] + offsets, targets[which] + offsets, lengths))
    started = [arena.kit.start_copy(pieces)] if len(pieces) else []
    storages = ((capture.storages[index], placement[index]) for index in moving)
    staged = [
        (arena.address + place + extent.offset, storage.memory[extent.offset : extent.end])
        for storage, place in storages
        if isinstance(storage, HostStorage)
        for extent in storage.used
    ]
    if staged:
        arena.kit.write_all(staged)
    return started


@lru_cache(maxsize=8)
def _device_runs(storages: ById[tuple[StorageRecord, ...]]) -> NDArray[np.int64]:
    """Return lines of [storage, offset, length]: what is used of a device's storages."""
    found = [(i, e.offset, e.length) for i, each in enumerate(storages.value) if each.on_device for e in each.used]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _copy(storage: Storage, arena: Arena, place: int) -> None:
    if isinstance(storage, DeviceStorage):
        raise StateRefused("", "some of it lies on a device, and its slot lies in host memory")
    for extent in storage.used:
        np.copyto(arena.memory[place + extent.offset : place + extent.end], storage.memory[extent.offset : extent.end])
