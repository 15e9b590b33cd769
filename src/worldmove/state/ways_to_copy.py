"""Which pieces of a copy go by the copy engine, and which by one launch. Pure.

The engine is the fastest for what is large, above all from another GPU (391 against 373 GB/s, measured), and takes its
time for each: 15 microseconds from another GPU, half of that on one. A launch takes all pieces at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from worldmove.state.memory import Piece

Numbers = NDArray[np.int64]
FEW = 8
"""Up to so many pieces go one by one: planning a launch costs as much."""
LARGE_BYTES = 4 << 20
MANY_LARGE = 32
"""More than so many are for the launch, with all others."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Pieces, [pieces, 3]."""

    by_engine: Numbers
    by_launch: Numbers


def ways_to_copy(pieces: Sequence[Piece] | Numbers) -> Ways:
    """Deal pieces to the two ways; each goes by one of them."""
    table = np.asarray(pieces, dtype=np.int64).reshape(-1, 3)
    if len(table) <= FEW:
        return Ways(table, table[:0])
    is_large = table[:, 2] >= LARGE_BYTES
    if is_large.sum() > MANY_LARGE:
        return Ways(table[:0], table)
    if len(table) - is_large.sum() <= FEW:
        return Ways(table, table[:0])
    return Ways(table[is_large], table[~is_large])


def written(pieces: Sequence[Piece] | Numbers) -> Numbers:
    """Return from where to where pieces are written, lines of begin and end.

    Of many, one line from the first to the last; there may be much between that is not.
    """
    table = np.asarray(pieces, dtype=np.int64).reshape(-1, 3)
    begins, ends = table[:, 1], table[:, 1] + table[:, 2]
    if len(table) <= FEW:
        return np.column_stack((begins, ends))
    return np.array([[begins.min(), ends.max()]])
