"""Rows of a device's memory, against their twins of host memory: the double stands in for a GPU."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.state.arena_rows import digests_in, move_in
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kit_double import DoubleKit
from worldmove.state.row_digests import row_digests
from worldmove.state.row_moves import Moves, apply
from worldmove.state.rows import Rows

KIT = DoubleKit()


def numbers(values: list[int]) -> Any:
    return np.array(values, dtype=np.int64)


def filled(size: int) -> tuple[DeviceArena, Any]:
    """An arena, and what is in it."""
    arena = DeviceArena(size, "rows", KIT)
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    arena.write(0, data)
    return arena, data


@settings(max_examples=25)
@given(st.data())
def test_a_row_has_one_digest_in_either_kind_of_memory(data: Any) -> None:
    arena, held = filled(8192)
    offsets: list[int] = []
    lengths: list[int] = []
    at = data.draw(st.integers(0, 9))
    while len(offsets) < 60:
        length = data.draw(st.sampled_from([1, 3, 16, 24, 24, 24, 24, 24, 24, 33]))
        if at + length > len(held):
            break
        offsets.append(at)
        lengths.append(length)
        at += length + data.draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 8]))
    rows = Rows(offsets=numbers(offsets), lengths=numbers(lengths))
    assert digests_in(arena, rows).tolist() == row_digests(held, rows).tolist()
    arena.close()


def test_rows_of_a_whole_cache_and_none_at_all() -> None:
    arena, held = filled(1 << 20)
    rows = Rows(offsets=np.arange(340, dtype=np.int64) * 3072, lengths=np.full(340, 3072))
    assert digests_in(arena, rows).tolist() == row_digests(held, rows).tolist()
    assert len(digests_in(arena, Rows(offsets=numbers([]), lengths=numbers([])))) == 0
    arena.close()


def test_moves_do_the_same_in_either_kind_of_memory() -> None:
    """Some at once, one that overlaps itself, in both directions, and one through the spare."""
    size = 8192
    moves = Moves(
        sources=numbers([100, 300, 1000, 3100, 5000, 5064, size]),
        destinations=numbers([0, 600, 900, 3000, size, 5000, 5064]),
        lengths=numbers([64, 64, 700, 64, 64, 64, 64]),
        waves=numbers([0, 0, 0, 1, 2, 3, 4]),
        spare_at=size,
        spare_bytes=64,
    )
    arena, held = filled(size)
    move_in(arena, moves)
    apply(moves, held.data, memoryview(bytearray(64)))
    assert (arena.read(0, size) == held).all()
    arena.close()
    arena, held = filled(size)
    back = Moves(
        sources=numbers([900]), destinations=numbers([1000]), lengths=numbers([700]), waves=numbers([0]), spare_at=size
    )
    move_in(arena, back)
    apply(back, held.data, memoryview(bytearray()))
    assert (arena.read(0, size) == held).all()
    arena.close()
