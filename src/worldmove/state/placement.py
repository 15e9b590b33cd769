"""Where in an arena a state's storages lie.

A placement has the arena offset of every storage of a manifest.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from worldmove.errors import ArenaFull, ManifestError
from worldmove.state.arena import AnyArena
from worldmove.state.by_id import ById
from worldmove.state.capture import Capture
from worldmove.state.extent import Extent
from worldmove.state.geometry import NO_RUNS, merge, to_extents
from worldmove.state.manifest import Manifest
from worldmove.state.room import Room
from worldmove.state.storage import StorageRecord
from worldmove.units import ALIGNMENT_BYTES

EARLY_SHARE = 15 / 16
"""At most so much of a state's bytes is brought early. Of 1.67 GB over NVLink 7/8 took 0.17 ms longer, 3/4 0.21, when
the destination read in two parts too (bench/results/pull_ways-h200x2.json); they were not compared again since.
"""

Placement = tuple[int, ...]
"""The arena offset of each storage of a manifest, in its order."""


def foreseen(capture: Capture, arena: AnyArena) -> Placement:
    """Return where ``gather`` would bring everything, and copy nothing. Raises ArenaFull."""
    return placed(capture, arena)[0]


def placed(capture: Capture, arena: AnyArena) -> tuple[Placement, list[int]]:
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
        try:
            places[moving] = _found(kept.tobytes(), wanted.tobytes(), size)
        except ArenaFull as error:  # what one piece lacks says little: what the whole needs is what a slot is made for
            raise ArenaFull(int(lengths.sum()), size, piece=(error.needed, error.available)) from error
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


def in_place_bytes(capture: Capture, arena: AnyArena) -> int:
    """Return how many bytes of a state lie in an arena already."""
    begin, end = arena.address, arena.address + arena.size
    inside = (each for each in capture.storages if begin <= each.address and each.address + each.num_bytes <= end)
    return sum(extent.length for storage in inside for extent in storage.used)


def early_of(manifest: Manifest, places: Sequence[int]) -> tuple[int, ...]:
    """Return the storages of a state that are brought before all of it is known, where they lie in its slot by then.

    Those on the device from the slot's beginning on, up to EARLY_SHARE of all: the source reads it for the second time
    while the rest is on its way, so that little is left to be read when that has come. None where they would be the
    lesser part.
    """
    return _early(ById(manifest.storages), tuple(places))


@lru_cache(maxsize=8)
def _early(storages: ById[tuple[StorageRecord, ...]], places: Placement) -> tuple[int, ...]:
    lengths = _lengths(storages)
    total, order = int(lengths.sum()), np.argsort(places)
    there = order[[storages.value[index].on_device for index in order]]
    some = there[np.cumsum(lengths[there]) <= EARLY_SHARE * total]
    found = some if 2 * int(lengths[some].sum()) > total else there
    return tuple(sorted(found.tolist())) if 2 * int(lengths[found].sum()) > total else ()


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


def extents(manifest: Manifest, placement: Placement) -> tuple[Extent, ...]:
    """Return what must travel, in arena offsets: sorted, disjoint, adjacent ones merged."""
    return _extents(ById(manifest.storages), tuple(placement), None)


def extents_of(manifest: Manifest, placement: Placement, which: Sequence[int]) -> tuple[Extent, ...]:
    """Return the same of some storages alone. Raises ManifestError for one that there is not."""
    if any(not 0 <= index < len(manifest.storages) for index in which):
        raise ManifestError("a storage is spoken of that there is not")
    return _extents(ById(manifest.storages), tuple(placement), tuple(which))


# Asked for when an offer is prepared for, and again inside the pause.
@lru_cache(maxsize=16)
def _extents(
    storages: ById[tuple[StorageRecord, ...]], placement: Placement, which: tuple[int, ...] | None
) -> tuple[Extent, ...]:
    pairs = list(zip(storages.value, placement, strict=True))
    some = pairs if which is None else [pairs[index] for index in which]
    runs = [(at + e.offset, at + e.end) for storage, at in some for e in storage.used]
    return to_extents(merge([NO_RUNS, np.array(runs, dtype=np.int64).reshape(-1, 2)]))
