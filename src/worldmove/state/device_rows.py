"""Rows in a device's memory: digested and moved there. Only the digests come back."""

from itertools import pairwise

import numpy as np
import torch

from worldmove.state.crossing import to_host
from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import MemoryKit
from worldmove.state.row_digests import Digests
from worldmove.state.row_moves import Moves
from worldmove.state.rows import Numbers, Rows

AROUND_BYTES = 256 << 20
"""Of runs that overlap themselves, what goes through spare memory at a time."""


def device_row_digests(arena: DeviceArena, rows: Rows) -> Digests:
    """Return the digest of each row, u64[rows]."""
    with arena.kit.apart():
        digests = arena.kit.row_digests(arena.address, rows.offsets, rows.lengths)
        return to_host(digests).view(np.uint64)


def move_in_device(arena: DeviceArena, moves: Moves) -> None:
    """Do moves, a launch for each wave and two for those of it that overlap themselves; return when they are done."""
    if not len(moves):
        return
    with arena.kit.apart() as device:
        spare = torch.empty(max(moves.spare_bytes, 1), dtype=torch.uint8, device=device)
        base = arena.address, spare.data_ptr() - moves.spare_at
        at = [np.where(ends < moves.spare_at, *base) + ends for ends in (moves.sources, moves.destinations)]
        table = np.stack((*at, moves.lengths), axis=1)
        own = np.abs(at[0] - at[1]) < moves.lengths
        cuts = [0, *(np.flatnonzero(np.diff(moves.waves)) + 1).tolist(), len(moves)]
        for first, last in pairwise(cuts):
            wave, alone = table[first:last], own[first:last]
            copies = [arena.kit.start_copy(wave[~alone])] if not alone.all() else []
            if alone.any():
                _around(arena.kit, wave[alone], device)
            for copy in copies:
                copy.wait()


def _around(kit: MemoryKit, pieces: Numbers, device: torch.device) -> None:
    """Copy pieces that overlap themselves, through spare memory: some of them at a time, or one alone."""
    ends = np.cumsum(pieces[:, 2])
    for turn in np.split(pieces, np.flatnonzero(np.diff(ends // AROUND_BYTES)) + 1):
        begins = np.cumsum(turn[:, 2]) - turn[:, 2]
        spare = torch.empty(int(turn[:, 2].sum()), dtype=torch.uint8, device=device)
        places = spare.data_ptr() + begins
        kit.start_copy(np.stack((turn[:, 0], places, turn[:, 2]), axis=1)).wait()
        kit.start_copy(np.stack((places, turn[:, 1], turn[:, 2]), axis=1)).wait()
