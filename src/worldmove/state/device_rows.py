"""Rows in a device's memory: digested and moved there, by torch and the kit's copies. Only the digests come back.

``state.row_digests`` has the definition, and host memory's twin of this.
"""

import numpy as np
import torch

from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import Part, Piece
from worldmove.state.row_digests import HALF_BYTES, WORD_BYTES, A, B, Digests, finished, side_by_side
from worldmove.state.row_moves import Moves
from worldmove.state.rows import Numbers, Rows

TILE_BYTES = 64 << 20
"""What is looked at by one launch; what torch needs beside it is a few times as much."""
_HALF_BITS = 8 * HALF_BYTES
_LOW = (1 << _HALF_BITS) - 1


def device_row_digests(arena: DeviceArena, rows: Rows) -> Digests:
    """Return the digest of each row, u64[rows]."""
    memory = _memory(arena)
    sums = torch.zeros((2, len(rows)), dtype=torch.int64, device=memory.device)
    tables = [torch.from_numpy(table.view(np.int64).copy()).to(memory.device) for table in (A, B)]
    done = np.zeros(len(rows), dtype=bool)
    for first, last in side_by_side(rows):
        done[first:last] = True
        begin, length = int(rows.offsets[first]), int(rows.lengths[first])
        step = max(1, TILE_BYTES // length)
        for at in range(first, last, step):
            end = min(at + step, last)
            start = begin + (at - first) * length
            lines = memory[start : start + (end - at) * length].view(torch.int64).view(end - at, -1)
            _sum(lines, tables, sums[:, at:end])
    for which, length in _others(rows, done):
        index = torch.from_numpy(rows.offsets[which][:, None] + np.arange(length)).to(memory.device)
        lines = torch.zeros(
            (len(which), -(-length // WORD_BYTES) * WORD_BYTES), dtype=torch.uint8, device=memory.device
        )
        lines[:, :length] = memory[index]
        found = torch.zeros((2, len(which)), dtype=torch.int64, device=memory.device)
        _sum(lines.view(torch.int64), tables, found)
        sums[:, torch.from_numpy(which).to(memory.device)] = found
    a, b = sums.cpu().numpy().view(np.uint64)
    return finished(a, b, rows.lengths)


def move_in_device(arena: DeviceArena, moves: Moves) -> None:
    """Do moves, wave by wave; return when they are done."""
    memory = _memory(arena)
    spare = torch.empty(max(moves.spare_bytes, 1), dtype=torch.uint8, device=memory.device)
    base = arena.address, spare.data_ptr() - moves.spare_at
    at = [np.where(ends < moves.spare_at, base[0], base[1]) + ends for ends in (moves.sources, moves.destinations)]
    own = np.abs(at[0] - at[1]) < moves.lengths
    cuts = np.flatnonzero(np.diff(moves.waves)) + 1
    for wave in np.split(np.arange(len(moves)), cuts):
        together = wave[~own[wave]]
        pieces = zip(*(numbers[together].tolist() for numbers in (*at, moves.lengths)), strict=True)
        copies = [arena.kit.start_copy([Piece(*piece) for piece in pieces])] if len(together) else []
        for copy in copies:
            copy.wait()
        for alone in wave[own[wave]].tolist():
            source, destination = int(moves.sources[alone]), int(moves.destinations[alone])
            kept = memory[source : source + int(moves.lengths[alone])].clone()  # it overlaps itself
            memory[destination : destination + len(kept)].copy_(kept)
    if memory.is_cuda:
        torch.cuda.current_stream(memory.device).synchronize()


def _memory(arena: DeviceArena) -> torch.Tensor:
    """Return all of a slot's memory, uint8[size]."""
    storage = arena.kit.storage(Part(arena.address, arena.size), arena.owner)
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _sum(lines: torch.Tensor, tables: list[torch.Tensor], into: torch.Tensor) -> None:
    """Add up both sums of rows of whole words, int64 [rows, words]: they wrap as unsigned ones do."""
    num_words = lines.shape[1]
    torch.sum(lines * tables[0][:num_words], dim=1, out=into[0])
    if num_words > 1:
        odd = (lines[:, :-1] >> _HALF_BITS).bitwise_and_(_LOW).bitwise_or_(lines[:, 1:] << _HALF_BITS)
        torch.sum(odd.mul_(tables[1][: num_words - 1]), dim=1, out=into[1])


def _others(rows: Rows, done: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[tuple[Numbers, int]]:
    """Return the rows that are left, those of one length together, and no more of them than a tile holds."""
    left = np.flatnonzero(~done)
    found = []
    for length in np.unique(rows.lengths[left]).tolist():
        mine = left[rows.lengths[left] == length]
        step = max(1, TILE_BYTES // (8 * length))  # each byte has an index of eight
        found += [(mine[at : at + step], length) for at in range(0, len(mine), step)]
    return found
