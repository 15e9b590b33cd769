"""The storages of a state, derived from its leaves: nothing about them is stored, so nothing can disagree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from worldmove.errors import ManifestError
from worldmove.state.check import check_view, item_bytes
from worldmove.state.extent import Extent
from worldmove.state.geometry import MAX_PIECES, Runs, bounds, byte_runs, merge, num_pieces, to_extents
from worldmove.state.leaf import ArrayLeaf, DeviceTensorLeaf, Leaf, TensorLeaf

MAX_STORAGE_BYTES = 1 << 44
MAX_EXTENTS = 1 << 16


class LeafError(ManifestError):
    """A manifest in which one leaf cannot be. ``path`` names it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'the state'}: {why}")
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRecord:
    """One piece of memory that leaves view: its length, and the union of the bytes that any leaf uses."""

    num_bytes: int
    used: tuple[Extent, ...]
    on_device: bool = False

    @property
    def num_used_bytes(self) -> int:
        """The bytes that are state. The others are no leaf's and do not travel."""
        return sum(extent.length for extent in self.used)


@dataclass(slots=True, kw_only=True)
class _Gathered:
    windows: list[tuple[int, int]] = field(default_factory=list)
    runs: list[Runs] = field(default_factory=list)
    path: str
    on_device: bool


def leaf_window(leaf: TensorLeaf | ArrayLeaf) -> tuple[int, int]:
    """Return begin and end of the memory that a leaf's buffer spans inside its storage."""
    if isinstance(leaf, TensorLeaf):
        return leaf.window_offset, leaf.window_offset + leaf.window_length
    return bounds(leaf.offset, item_bytes(leaf), leaf.shape, leaf.strides)


def leaf_runs(leaf: TensorLeaf | ArrayLeaf) -> Runs:
    """Return the bytes that a leaf uses inside its storage."""
    if isinstance(leaf, ArrayLeaf):
        return byte_runs(leaf.offset, item_bytes(leaf), leaf.shape, leaf.strides)
    size = item_bytes(leaf)
    strides = [stride * size for stride in leaf.stride]
    return byte_runs(leaf.window_offset + leaf.offset * size, size, leaf.shape, strides)


def derive_storages(paths: Sequence[str], leaves: Sequence[Leaf]) -> tuple[StorageRecord, ...]:
    """Check the views among the leaves; return the storages in the order in which the leaves first name them.

    Raises LeafError for a view that is out of range or in too many pieces, and where storages are named in
    another order; ManifestError where a storage's windows leave a gap or do not begin at 0.
    """
    return _derive(tuple((p, v) for p, v in zip(paths, leaves, strict=True) if isinstance(v, TensorLeaf | ArrayLeaf)))


# From one boundary to the next a session's views mostly stay, and this is inside the pause of a move.
@lru_cache(maxsize=8)
def _derive(views: tuple[tuple[str, TensorLeaf | ArrayLeaf], ...]) -> tuple[StorageRecord, ...]:
    gathered: list[_Gathered] = []
    pieces = 0
    for path, view in views:
        pieces += _check(path, view)
        if pieces > MAX_PIECES:
            raise LeafError(path, "its bytes lie in too many pieces")
        if view.storage is None:
            continue
        if view.storage > len(gathered):
            raise LeafError(path, f"its storage is {view.storage}, and {len(gathered)} were named before it")
        if view.storage == len(gathered):
            gathered.append(_Gathered(path=path, on_device=isinstance(view, DeviceTensorLeaf)))
        if gathered[view.storage].on_device is not isinstance(view, DeviceTensorLeaf):
            raise LeafError(path, f"its memory is that of {gathered[view.storage].path}, but of another kind")
        gathered[view.storage].windows.append(leaf_window(view))
        gathered[view.storage].runs.append(leaf_runs(view))
    records = tuple(_record(storage) for storage in gathered)
    if sum(len(record.used) for record in records) > MAX_EXTENTS:
        worst = max(range(len(records)), key=lambda index: len(records[index].used))
        raise LeafError(gathered[worst].path, f"the state is used in more than {MAX_EXTENTS} pieces")
    return records


def _check(path: str, view: TensorLeaf | ArrayLeaf) -> int:
    """Check one view; return in how many pieces it lies."""
    try:
        check_view(view)
    except ManifestError as error:
        raise LeafError(path, str(error)) from error
    return _num_pieces(view)


def _num_pieces(view: TensorLeaf | ArrayLeaf) -> int:
    if isinstance(view, TensorLeaf):
        return num_pieces(1, view.shape, view.stride)
    return num_pieces(item_bytes(view), view.shape, view.strides)


def _record(gathered: _Gathered) -> StorageRecord:
    end = 0
    for begin, window_end in sorted(gathered.windows):
        if begin > end or (begin == end and end > 0):
            raise ManifestError(f"the storage of {gathered.path} has a gap at byte {end}")
        end = max(end, window_end)
    if end > MAX_STORAGE_BYTES:
        raise ManifestError(f"the storage of {gathered.path} has {end} bytes, more than {MAX_STORAGE_BYTES}")
    runs = merge(gathered.runs)
    if len(runs) > MAX_EXTENTS:
        raise LeafError(gathered.path, f"its storage is used in {len(runs)} pieces, more than {MAX_EXTENTS}")
    return StorageRecord(num_bytes=end, used=to_extents(runs), on_device=gathered.on_device)
