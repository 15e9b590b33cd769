"""The storages of a state, derived from its leaves: nothing about them is stored, so nothing can disagree."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from worldmove.errors import ManifestError
from worldmove.state.dtypes import TORCH_ITEM_BYTES, numpy_item_bytes
from worldmove.state.extent import Extent
from worldmove.state.geometry import MAX_PIECES, NO_RUNS, Runs, bounds, byte_runs, merge, num_pieces, to_extents
from worldmove.state.leaf import ArrayLeaf, Leaf, TensorLeaf

MAX_STORAGE_BYTES = 1 << 44
MAX_EXTENTS = 1 << 16


class TooManyPiecesError(ManifestError):
    """The used bytes lie in more pieces than a manifest may name. ``path`` is the leaf at which that showed."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the bytes of {path} lie in too many pieces")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRecord:
    """One piece of memory that leaves view: its length, and the union of the bytes that any leaf uses."""

    num_bytes: int
    used: tuple[Extent, ...]

    @property
    def num_used_bytes(self) -> int:
        """The bytes that are state. The others are no leaf's and do not travel."""
        return sum(extent.length for extent in self.used)


@dataclass(slots=True, kw_only=True)
class _Gathered:
    windows: list[tuple[int, int]] = field(default_factory=list)
    runs: list[Runs] = field(default_factory=list)
    path: str


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


def item_bytes(leaf: TensorLeaf | ArrayLeaf) -> int:
    """Return the bytes of one element. Raises ManifestError where the dtype is not carried."""
    size = TORCH_ITEM_BYTES.get(leaf.dtype) if isinstance(leaf, TensorLeaf) else numpy_item_bytes(leaf.dtype)
    if size is None:
        raise ManifestError(f"the dtype {leaf.dtype[:40]!r} is not carried")
    return size


def derive_storages(paths: Sequence[str], leaves: Sequence[Leaf]) -> tuple[StorageRecord, ...]:
    """Return the storages in the order in which the leaves first name them.

    Raises ManifestError where they are named in another order, where a storage's windows leave a gap or do not
    begin at 0, and TooManyPiecesError beyond the limits.
    """
    gathered: list[_Gathered] = []
    pieces = 0
    for path, leaf in zip(paths, leaves, strict=True):
        if not isinstance(leaf, TensorLeaf | ArrayLeaf) or leaf.storage is None:
            continue
        if leaf.storage > len(gathered):
            raise ManifestError(f"{path} is in storage {leaf.storage}, and {len(gathered)} were named before it")
        if leaf.storage == len(gathered):
            gathered.append(_Gathered(path=path))
        strides = leaf.stride if isinstance(leaf, TensorLeaf) else leaf.strides
        pieces += num_pieces(1 if isinstance(leaf, TensorLeaf) else item_bytes(leaf), leaf.shape, strides)
        if pieces > MAX_PIECES:
            raise TooManyPiecesError(path)
        gathered[leaf.storage].windows.append(leaf_window(leaf))
        gathered[leaf.storage].runs.append(leaf_runs(leaf))
    records = tuple(_record(storage) for storage in gathered)
    if sum(len(record.used) for record in records) > MAX_EXTENTS:
        raise TooManyPiecesError(gathered[max(range(len(records)), key=lambda i: len(records[i].used))].path)
    return records


def _record(gathered: _Gathered) -> StorageRecord:
    end = 0
    for begin, window_end in sorted(gathered.windows):
        if begin > end or (begin == end and end > 0):
            raise ManifestError(f"the storage of {gathered.path} has a gap at byte {end}")
        end = max(end, window_end)
    if end > MAX_STORAGE_BYTES:
        raise ManifestError(f"the storage of {gathered.path} has {end} bytes, more than {MAX_STORAGE_BYTES}")
    return StorageRecord(num_bytes=end, used=to_extents(merge(gathered.runs or [NO_RUNS])))
