"""The groups that a state is digested in: runs of up to 1 MiB of one storage's used bytes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from worldmove.state.by_id import ById
from worldmove.state.capture import Capture
from worldmove.state.extent import Extent
from worldmove.state.geometry import overlap
from worldmove.state.leaf import ArrayLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.storage import StorageRecord, leaf_runs

GROUP_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Up to 1 MiB of a storage's used bytes, in extents of that storage. ``index`` counts over the whole state."""

    index: int
    storage: int
    extents: tuple[Extent, ...]

    @property
    def num_bytes(self) -> int:
        """Its bytes."""
        return sum(extent.length for extent in self.extents)


def groups(manifest: Manifest) -> tuple[Group, ...]:
    """Return the groups of a state, in order. Every storage begins a new one."""
    return _groups(ById(manifest.storages))


def group_paths(manifest: Manifest, group: Group) -> tuple[str, ...]:
    """Return the paths of the leaves that use a byte of the group."""
    views = ((leaf.path, leaf.content) for leaf in manifest.leaves)
    inside = ((p, v) for p, v in views if isinstance(v, TensorLeaf | ArrayLeaf) and v.storage == group.storage)
    return tuple(path for path, view in inside if overlap(leaf_runs(view), group.extents))


def group_bytes(capture: Capture, group: Group) -> memoryview | bytes:
    """Return a group's bytes; those of one extent are not copied."""
    views = [capture.storages[group.storage].view(extent) for extent in group.extents]
    return views[0] if len(views) == 1 else b"".join(views)


@lru_cache(maxsize=8)
def host_groups(storages: ById[tuple[StorageRecord, ...]]) -> tuple[Group, ...]:
    """Return those that are in host memory, by their numbers among all."""
    return tuple(group for group in _groups(storages) if not storages.value[group.storage].on_device)


@lru_cache(maxsize=8)
def device_places(storages: ById[tuple[StorageRecord, ...]]) -> NDArray[np.int64]:
    """Return, for each storage, which of the device's groups are its: from the first to before the second."""
    num_groups = Counter(group.storage for group in _groups(storages))
    counts = [num_groups[index] if storage.on_device else 0 for index, storage in enumerate(storages.value)]
    ends = np.cumsum(counts, dtype=np.int64)
    return np.stack((ends - counts, ends), axis=1)


# Every pass over a state asks for them, and from one boundary to the next they mostly stay.
@lru_cache(maxsize=8)
def _groups(storages: ById[tuple[StorageRecord, ...]]) -> tuple[Group, ...]:
    found: list[Group] = []
    for number, storage in enumerate(storages.value):
        for part in _parts(storage.used):
            found.append(Group(index=len(found), storage=number, extents=part))
    return tuple(found)


def _parts(used: tuple[Extent, ...]) -> Iterator[tuple[Extent, ...]]:
    """Cut extents into runs of GROUP_BYTES; the last is shorter."""
    part: list[Extent] = []
    room = GROUP_BYTES
    for extent in used:
        begin = extent.offset
        while begin < extent.end:
            length = min(room, extent.end - begin)
            part.append(Extent(offset=begin, length=length))
            begin, room = begin + length, room - length
            if not room:
                yield tuple(part)
                part, room = [], GROUP_BYTES
    if part:
        yield tuple(part)
