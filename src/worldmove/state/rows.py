"""The rows of a state: how finely it is looked at when somebody asks what of it has moved.

A row is the smallest run of a leaf that its engine can have moved: the leaf is cut at every step of its smallest
stride of at least ``MIN_ROW_BYTES``. What is longer than ``MAX_ROW_BYTES`` is cut again, from its beginning on. Where
leaves lie over each other every one's cuts count. So the rows of a state are the used bytes of its storages, each
byte in exactly one row, whatever the views are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from worldmove.errors import ManifestError, StateRefused
from worldmove.state.by_id import ById
from worldmove.state.check import item_bytes
from worldmove.state.extent import Extent
from worldmove.state.leaf import ArrayLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.runs import Runs
from worldmove.state.storage import StorageRecord, leaf_runs

MIN_ROW_BYTES = 512
"""What a finer grid would find is not worth its digests: 8 bytes for each row cross with the manifest."""
FINEST_ROW_BYTES = 16
FEW_ROWS = 8192
"""So many rows cost nothing to speak of: what is smaller is looked at more finely."""
MAX_ROW_BYTES = 4096
MAX_ROWS = 1 << 21
"""Their digests fill a message."""

Numbers = NDArray[np.int64]
View = TensorLeaf | ArrayLeaf

_NO_NUMBERS: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Runs of bytes, in arena offsets: ascending, disjoint. Read-only."""

    offsets: Numbers
    lengths: Numbers

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def ends(self) -> Numbers:
        """The first byte after each."""
        return self.offsets + self.lengths

    @property
    def num_bytes(self) -> int:
        """The bytes of all rows."""
        return int(self.lengths.sum())

    def some(self, which: Numbers) -> "Rows":
        """Return some of them, by their numbers, which ascend."""
        return Rows(offsets=self.offsets[which], lengths=self.lengths[which])

    def extents(self, chosen: NDArray[np.bool_]) -> Runs:
        """Return the bytes of some of the rows; adjacent ones merged."""
        return Runs(self.offsets[chosen], self.lengths[chosen]).joined(0)


_Each = tuple[Rows, ...]


def min_row_bytes(num_bytes: int) -> int:
    """Return how small the rows of a state of so many bytes may be: a power of two."""
    return min(MIN_ROW_BYTES, max(FINEST_ROW_BYTES, 1 << (num_bytes // FEW_ROWS).bit_length()))


def rows_of(manifest: Manifest, placement: Sequence[int], min_row_bytes: int = MIN_ROW_BYTES) -> Rows:
    """Return the rows of a state that lies in an arena.

    Raises StateRefused where there are more than MAX_ROWS, ManifestError where it has another number of places.
    """
    views = tuple(leaf.content for leaf in manifest.leaves if isinstance(leaf.content, TensorLeaf | ArrayLeaf))
    return _placed(_of_same(ById(manifest.storages), views, min_row_bytes), tuple(placement))


# Asked for while the session is played, and again inside the pause.
@lru_cache(maxsize=8)
def _placed(relative: ById[_Each], placement: tuple[int, ...]) -> Rows:
    if len(relative.value) != len(placement):
        raise ManifestError(f"{len(placement)} places for {len(relative.value)} storages")
    order = np.argsort(np.array(placement, dtype=np.int64), kind="stable").tolist()
    parts = [(relative.value[index].offsets + placement[index], relative.value[index].lengths) for index in order]
    return _rows([offsets for offsets, _ in parts], [lengths for _, lengths in parts])


@lru_cache(maxsize=8)
def _of_same(storages: ById[tuple[StorageRecord, ...]], views: tuple[View, ...], min_row_bytes: int) -> ById[_Each]:
    return ById(_of_equal(storages.value, views, min_row_bytes))


# A manifest that has come in a message equals one that was known, and is another object.
@lru_cache(maxsize=4)
def _of_equal(storages: tuple[StorageRecord, ...], views: tuple[View, ...], min_row_bytes: int) -> _Each:
    """Return the rows of each storage, in offsets inside it."""
    mine: list[list[View]] = [[] for _ in storages]
    for view in views:
        if view.storage is not None:
            mine[view.storage].append(view)
    found, total = [], 0
    for record, over in zip(storages, mine, strict=True):
        found.append(_of_storage(record.used, over, min_row_bytes))
        total += len(found[-1])
        if total > MAX_ROWS:
            raise StateRefused("", f"it has more than {MAX_ROWS:,} rows of at least {min_row_bytes} bytes")
    return tuple(found)


def _of_storage(used: Sequence[Extent], views: Sequence[View], min_row_bytes: int) -> Rows:
    """Cut the used bytes of one storage wherever one of its views begins a row."""
    if not used:
        return _rows([], [])
    begins = np.array([extent.offset for extent in used], dtype=np.int64)
    ends = np.array([extent.end for extent in used], dtype=np.int64)
    cuts = _cuts(begins, views, min_row_bytes)
    inside = np.searchsorted(begins, cuts, side="right") - 1
    kept = (inside >= 0) & (cuts < ends[np.maximum(inside, 0)])
    cuts, inside = cuts[kept], inside[kept]
    following = np.concatenate((cuts[1:], ends[-1:]))
    lengths = np.minimum(following, ends[inside]) - cuts
    pieces = -(-lengths // MAX_ROW_BYTES)
    if int(pieces.sum()) > MAX_ROWS:
        raise StateRefused("", f"it has more than {MAX_ROWS:,} rows of at least {min_row_bytes} bytes")
    number = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    offsets = np.repeat(cuts, pieces) + number * MAX_ROW_BYTES
    tails = np.repeat(cuts + lengths, pieces) - offsets
    return _rows([offsets], [np.minimum(tails, MAX_ROW_BYTES)])


def _cuts(begins: Numbers, views: Sequence[View], min_row_bytes: int) -> Numbers:
    """Return where rows begin, ascending. Views may lie over each other as often as they like: memory stays bounded."""
    found, pending, num_pending = begins, [_NO_NUMBERS], 0
    for view in views:
        pending.append(row_starts(view, min_row_bytes))
        num_pending += len(pending[-1])
        if num_pending > 2 * MAX_ROWS:
            found, pending, num_pending = np.unique(np.concatenate([found, *pending])), [_NO_NUMBERS], 0
    return np.unique(np.concatenate([found, *pending]))


def rolled_from(
    rows: Rows, manifest: Manifest, placement: Sequence[int], rolled: Mapping[str, tuple[int, int, int]]
) -> Numbers:
    """Return where each row lay before leaves were rolled, by what is said of them; -1 where nothing is.

    ``rolled``: by path, the axis, and by how much everything from the third number on moved to the front.
    """
    found = np.full(len(rows), -1, dtype=np.int64)
    for leaf in manifest.leaves:
        view, told = leaf.content, rolled.get(leaf.path)
        if told is None or not isinstance(view, TensorLeaf | ArrayLeaf) or view.storage is None:
            continue
        axis, block, sink = told
        if axis >= len(view.shape) or sink + block >= view.shape[axis]:
            continue
        for which in leaf_rows(rows, view, placement):
            found[which] = rows.offsets[which] + block * step_of(view, axis)
    return found


def leaf_rows(rows: Rows, view: View, placement: Sequence[int]) -> Iterator[Numbers]:
    """Yield the numbers of the rows that begin in a leaf, run by run."""
    if view.storage is None:
        return
    runs = leaf_runs(view) + placement[view.storage]
    first, last = (np.searchsorted(rows.offsets, runs[:, side]) for side in (0, 1))
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        yield np.arange(begin, end, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafRows:
    """A leaf, and the numbers of the rows that begin in it, run by run."""

    path: str
    view: View
    which: Numbers


def final_rows(rows: Rows, manifest: Manifest, placement: Sequence[int], path: str) -> Iterator[Numbers]:
    """Yield, leaf by leaf, the numbers of the rows that begin in the leaves under a path: a leaf's or a container's."""
    return (leaf.which for leaf in final_leaves(rows, manifest, placement, path))


def final_leaves(rows: Rows, manifest: Manifest, placement: Sequence[int], path: str) -> Iterator[LeafRows]:
    """Yield the leaves under a path, a leaf's or a container's, with their rows."""
    for leaf in manifest.leaves:
        view = leaf.content
        if not isinstance(view, TensorLeaf | ArrayLeaf) or view.storage is None:
            continue
        if leaf.path == path or (leaf.path.startswith(path) and leaf.path[len(path)] in ".["):
            which = np.concatenate([_NO_NUMBERS, *leaf_rows(rows, view, placement)])
            yield LeafRows(path=leaf.path, view=view, which=which)


def step_of(view: View, axis: int) -> int:
    """Return how many bytes lie between two numbers along an axis."""
    return abs(view.stride[axis] * item_bytes(view) if isinstance(view, TensorLeaf) else view.strides[axis])


def row_starts(view: View, min_row_bytes: int = MIN_ROW_BYTES) -> Numbers:
    """Return where a view's rows begin inside its storage, in no order; more than once where they coincide."""
    if 0 in view.shape:
        return _NO_NUMBERS
    size = item_bytes(view)
    if isinstance(view, TensorLeaf):
        first, strides = view.window_offset + view.offset * size, [stride * size for stride in view.stride]
    else:
        first, strides = view.offset, list(view.strides)
    steps = [(stride, count) for stride, count in zip(strides, view.shape, strict=True) if stride and count > 1]
    first += sum((count - 1) * stride for stride, count in steps if stride < 0)
    starts = np.array([first], dtype=np.int64)
    for stride, count in ((abs(stride), count) for stride, count in steps if abs(stride) >= min_row_bytes):
        if len(starts) * count > 2 * MAX_ROWS:
            raise StateRefused("", f"one of its leaves has more than {MAX_ROWS:,} rows")
        starts = (starts[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return starts


def _rows(offsets: Sequence[Numbers], lengths: Sequence[Numbers]) -> Rows:
    parts = [np.concatenate([_NO_NUMBERS, *part]) for part in (offsets, lengths)]
    for part in parts:
        part.flags.writeable = False
    return Rows(offsets=parts[0], lengths=parts[1])
