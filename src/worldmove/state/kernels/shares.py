"""Work dealt to programs: lines of tiles, cut so that every program gets an equal run of tiles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deal:
    """Shares in order: of which ``line``, from which ``tile``, how many. Program p has ``bounds[p]:bounds[p + 1]``."""

    line: Numbers
    tile: Numbers
    num_tiles: Numbers
    bounds: NDArray[np.int32]


def deal(tiles: Numbers, num_programs: int) -> Deal:
    """Deal lines of ``tiles`` tiles each. There are at most ``len(tiles) + num_programs`` shares."""
    ends = np.cumsum(tiles)
    total = int(ends[-1]) if len(ends) else 0
    turns = total * np.arange(num_programs + 1, dtype=np.int64) // num_programs
    cuts = np.unique(np.concatenate((turns, ends)))
    begins = cuts[:-1]
    line = np.searchsorted(ends, begins, side="right")
    return Deal(
        line=line,
        tile=begins - (ends - tiles)[line],
        num_tiles=np.diff(cuts),
        bounds=np.searchsorted(begins, turns).astype(np.int32),
    )
