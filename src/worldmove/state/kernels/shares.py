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


def deal(tiles: Numbers, num_programs: int, *, overhead: int = 0) -> Deal:
    """Deal lines of ``tiles`` tiles each. There are at most ``len(tiles) + num_programs`` shares.

    ``overhead``: how many tiles a line costs beside its own, so that a program that gets small lines gets few.
    """
    costs = np.where(tiles > 0, tiles + overhead, 0)
    ends = np.cumsum(costs)
    total = int(ends[-1]) if len(ends) else 0
    turns = total * np.arange(num_programs + 1, dtype=np.int64) // num_programs
    cuts = np.unique(np.concatenate((turns, ends)))
    line = np.searchsorted(ends, cuts[:-1], side="right")
    inside = np.stack((cuts[:-1], cuts[1:])) - (ends - costs)[line]
    first, last = np.maximum(inside - overhead, 0)
    some = last > first
    return Deal(
        line=line[some],
        tile=first[some],
        num_tiles=(last - first)[some],
        bounds=np.searchsorted(cuts[:-1][some], turns).astype(np.int32),
    )
