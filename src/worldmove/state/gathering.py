"""Brings a state into an arena: what lies in it already stays, the rest is copied to a place of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from worldmove.errors import StateRefused
from worldmove.state.arena import AnyArena, Arena
from worldmove.state.by_id import ById
from worldmove.state.capture import Capture, DeviceStorage, HostStorage, Storage
from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import PendingCopy
from worldmove.state.placement import Placement, placed
from worldmove.state.progress import GetsOn, unheard
from worldmove.state.storage import StorageRecord
from worldmove.units import MIB

PIECE_BYTES = 64 * MIB
"""Of host memory: some milliseconds."""


def adopt(capture: Capture, arena: AnyArena, gets_on: GetsOn = unheard) -> Placement:
    """Copy a newly opened state into its arena, every address modulo 256 kept. Raises ArenaFull.

    Whatever lay in the arena is overwritten, but for storages of this very state. ``gets_on`` hears of each piece of
    host memory.
    """
    return gather(capture, arena, gets_on)


def gather(capture: Capture, arena: AnyArena, gets_on: GetsOn = unheard) -> Placement:
    """Bring into the arena what has left it; storages that lie in it stay. Raises ArenaFull.

    Room that no storage of this capture uses is free: what lay there is state no longer. Host memory of a state
    whose arena is a device's never lies in it: it is *staged* there, anew each time, and its session goes on with it
    where it is.
    """
    gathered = begin_gather(capture, arena, gets_on)
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


def begin_gather(capture: Capture, arena: AnyArena, gets_on: GetsOn = unheard) -> Gathered:
    """Begin what ``gather`` does; on a device, whatever its kit begins after this comes after it. Raises ArenaFull."""
    placement, moving = placed(capture, arena)
    started = begin_copy(capture, placement, moving, arena, gets_on)
    return Gathered(placement=placement, moved=tuple(moving), started=started)


def lying_in(capture: Capture, placement: Placement, arena: AnyArena) -> Capture:
    """Return a state as it lies in an arena into which it was brought; host memory that is staged there as it is."""
    storages = capture.storages
    if isinstance(arena, DeviceArena):
        first, owner = arena.address, arena.owner
        found = [
            msgspec.structs.replace(storage, address=first + at, owner=owner)
            if isinstance(storage, DeviceStorage)
            else storage
            for storage, at in zip(storages, placement, strict=True)
        ]
    else:
        ends = [at + storage.num_bytes for at, storage in zip(placement, storages, strict=True)]
        found = [
            HostStorage(memory=arena.memory[at:end], used=storage.used)
            for storage, at, end in zip(storages, placement, ends, strict=True)
        ]
    return replace(capture, storages=tuple(found), plans=[])


def begin_copy(
    capture: Capture,
    placement: Placement,
    which: Sequence[int],
    arena: AnyArena,
    gets_on: GetsOn = unheard,
) -> Sequence[PendingCopy]:
    """Begin to copy some storages of a state to their places in an arena. In host memory it is done at once."""
    if isinstance(arena, DeviceArena):
        return _copy_to_device(capture, placement, which, arena) if which else ()
    for index in which:
        _copy(capture.storages[index], arena, placement[index], gets_on)
    return ()


def _copy(storage: Storage, arena: Arena, place: int, gets_on: GetsOn) -> None:
    if isinstance(storage, DeviceStorage):
        raise StateRefused("", "some of it lies on a device, and its slot lies in host memory")
    for extent in storage.used:
        for begin in range(extent.offset, extent.end, PIECE_BYTES):
            end = min(begin + PIECE_BYTES, extent.end)
            np.copyto(arena.memory[place + begin : place + end], storage.memory[begin:end])
            gets_on()


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
