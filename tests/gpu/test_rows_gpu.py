"""Rows of a GPU's memory digested, found, moved and pulled, against host memory's twins."""

from typing import Any

import numpy as np
import pytest
import torch

from worldmove.move.reconcile import reconcile
from worldmove.state.arena_rows import digests_in, held_in, move_in
from worldmove.state.device_arena import DeviceArena
from worldmove.state.held import Held
from worldmove.state.row_digests import row_digests
from worldmove.state.rows import Rows

LINES, ROWS, ROW = 880, 6, 2048
"""A cache that rolls inside each of its lines."""


def _rolled(by: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    before = random.integers(0, 256, (LINES, ROWS, ROW), dtype=np.uint8)
    after = np.roll(before, -by, axis=1)
    after[:, ROWS - by :] = random.integers(0, 256, (LINES, by, ROW), dtype=np.uint8)
    return before.reshape(-1), after.reshape(-1)


@pytest.mark.parametrize("by", [1, 3, 5])
def test_a_cache_that_has_rolled_is_brought_over(kit: Any, by: int) -> None:
    before, after = _rolled(by, by)
    size = len(before)
    rows = Rows(offsets=np.arange(0, size, ROW), lengths=np.full(size // ROW, ROW))
    arena = DeviceArena(size, "rows", kit)
    arena.write(0, before)
    held = held_in(arena, rows)
    assert held.digests.tolist() == row_digests(before, rows).tolist()
    found = reconcile(held, rows, row_digests(after, rows), arena.size)
    twin = reconcile(Held(rows, row_digests(before, rows)), rows, row_digests(after, rows), arena.size)
    assert (found.moved_bytes, found.pulled_bytes) == (twin.moved_bytes, twin.pulled_bytes)
    assert found.pulled_bytes == LINES * by * ROW
    move_in(arena, found.moves)
    source = DeviceArena(size, "source", kit)
    source.write(0, after)
    window = arena.lend()
    window.start_copy(source.address, found.pulls).wait()
    window.close()
    assert np.array_equal(arena.read(0, size), after)
    for each in (arena, source):
        each.close()


def test_rows_of_any_lengths_and_order_come_together(kit: Any) -> None:
    """Equal ones among them, circles, and runs that overlap themselves."""
    random = np.random.default_rng(9)
    size, row = 1 << 16, 16
    rows = Rows(offsets=np.arange(0, size, row), lengths=np.full(size // row, row))
    names = random.integers(0, 256, (2000, row), dtype=np.uint8)
    for after in (
        names[random.integers(0, 2000, size // row)],
        np.concatenate((names[np.arange(7, size // row) % 2000], names[:7])),
    ):
        before, wanted = names[np.arange(size // row) % 2000].reshape(-1), after.reshape(-1)
        arena = DeviceArena(size, "rows", kit)
        arena.write(0, before)
        found = reconcile(held_in(arena, rows), rows, row_digests(wanted, rows), arena.size)
        move_in(arena, found.moves)
        for pull in found.pulls:
            arena.write(pull.offset, wanted[pull.offset : pull.end].copy())
        assert np.array_equal(arena.read(0, size), wanted)
        assert digests_in(arena, rows).tolist() == row_digests(wanted, rows).tolist()
        arena.close()
    torch.cuda.synchronize()
