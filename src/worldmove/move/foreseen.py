"""What becomes of a leaf in a block that rolls it as the block before did: moved rows, and new ones. Pure.

Word of a leaf that is final says nothing of its rows, and most of them are rows that were there before, in another
place. So where they have come to is guessed: they are moved, and the others are pulled. A guess that is wrong leaves
wrong rows, which are found by their digests like any other; and it is right only where what is held was right before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from worldmove.move.reconcile import MAX_SPARE_BYTES, ordered
from worldmove.state.held import Moved
from worldmove.state.row_moves import Moves
from worldmove.state.rows import LeafRows, Numbers, Rows, step_of
from worldmove.state.runs import Runs

Rolled = Mapping[str, tuple[int, int, int]]
"""By path: the axis, by how much everything from the third number on moved to the front."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foreseen:
    """What is done to some leaves: first the moves, then the pulls. ``which``: the numbers of all their rows."""

    which: Numbers
    moves: Moves
    pulls: Runs


def batches(leaves: Iterable[LeafRows], rows: Rows, num_bytes: int) -> Iterator[list[LeafRows]]:
    """Yield leaves until they are so many bytes, the last ones fewer."""
    waiting: list[LeafRows] = []
    waiting_bytes = 0
    for leaf in leaves:
        waiting.append(leaf)
        waiting_bytes += int(rows.lengths[leaf.which].sum())
        if waiting_bytes >= num_bytes:
            yield waiting
            waiting, waiting_bytes = [], 0
    if waiting:
        yield waiting


def foreseen(rows: Rows, leaves: Iterable[LeafRows], rolled: Rolled, spare_at: int) -> Foreseen:
    """Return what is done to leaves: to one of which nothing is said, all of it is pulled.

    ``spare_at``: an offset after every byte of the arena.
    """
    which, sources, pulled = [_NONE], np.full(len(rows), -1, dtype=np.int64), np.zeros(len(rows), dtype=bool)
    for leaf in leaves:
        which.append(leaf.which)
        _foresee(rows, leaf, rolled.get(leaf.path), sources, pulled)
    moves, dropped = ordered(_runs(rows, sources), spare_at, MAX_SPARE_BYTES)
    if len(dropped):  # what cannot be ordered cheaply is pulled: that is always right
        pulled |= sources >= 0
        moves, _ = ordered(_runs(rows, np.full(len(rows), -1, dtype=np.int64)), spare_at, MAX_SPARE_BYTES)
    return Foreseen(which=np.unique(np.concatenate(which)), moves=moves, pulls=rows.extents(pulled))


def _foresee(
    rows: Rows,
    leaf: LeafRows,
    rolled: tuple[int, int, int] | None,
    sources: Numbers,
    pulled: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
) -> None:
    """Note where each row of a leaf comes from, or that it is pulled, or neither: it stays."""
    which, view = leaf.which, leaf.view
    axis, block, sink = rolled or (0, 0, 0)
    if not len(which) or not block or axis >= len(view.shape) or sink + block >= view.shape[axis]:
        pulled[which] = True
        return
    step, count = step_of(view, axis), view.shape[axis]
    offsets = rows.offsets[which]
    place = (offsets - offsets[0]) // max(step, 1) % count
    comes_from = offsets + block * step
    at = np.minimum(np.searchsorted(rows.offsets, comes_from), len(rows) - 1)
    is_row = (rows.offsets[at] == comes_from) & (rows.lengths[at] == rows.lengths[which])
    is_moved = (place >= sink) & (place < count - block) & is_row & np.isin(at, which)
    sources[which[is_moved]] = comes_from[is_moved]
    pulled[which[(place >= sink) & ~is_moved]] = True


def _runs(rows: Rows, sources: Numbers) -> Moved:
    """Return rows that are moved, those that lie and come from side by side as one."""
    which = np.flatnonzero(sources >= 0)
    begins, lengths, by = rows.offsets[which], rows.lengths[which], sources[which] - rows.offsets[which]
    is_first = np.ones(len(which), dtype=bool)
    is_first[1:] = (begins[1:] != begins[:-1] + lengths[:-1]) | (by[1:] != by[:-1])
    first = np.flatnonzero(is_first)
    total = np.concatenate((_NONE, np.cumsum(lengths)))
    ends = np.concatenate((first[1:], [len(which)])).astype(np.int64)[: len(first)]
    sums = total[ends - 1] - total[first] + lengths[first] if len(first) else _NONE
    return Moved(sources[which][first], begins[first], sums)


_NONE: Numbers = np.empty(0, dtype=np.int64)
