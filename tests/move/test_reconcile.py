import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from worldmove.move import reconcile as module
from worldmove.move.reconcile import Difference, reconcile
from worldmove.state.extent import Extent
from worldmove.state.held import Held
from worldmove.state.row_digests import Bytes, Digests, row_digests
from worldmove.state.row_moves import apply
from worldmove.state.rows import Rows

ROW = 4


def _rows(offsets: Sequence[int], lengths: Sequence[int]) -> Rows:
    return Rows(offsets=np.array(offsets, dtype=np.int64), lengths=np.array(lengths, dtype=np.int64))


def _even(memory: Bytes, row: int = ROW) -> Rows:
    return _rows(range(0, len(memory), row), [row] * (len(memory) // row))


def _memory(names: Sequence[int], row: int = ROW) -> Bytes:
    return np.repeat(np.array(names, dtype=np.uint8), row)


def _difference(
    held: Bytes, wanted: Bytes, rows: tuple[Rows, Rows] | None = None, max_spare_bytes: int = 1 << 20
) -> Difference:
    before, after = rows or (_even(held), _even(wanted))
    found = Held(before, row_digests(held, before))
    end = max(len(held), len(wanted))
    return reconcile(found, after, row_digests(wanted, after), end, max_spare_bytes=max_spare_bytes)


def _landed(held: Bytes, wanted: Bytes, difference: Difference) -> Bytes:
    """What the destination has afterwards. Every read of a move is checked against a copy of what was held."""
    now = np.zeros(max(len(held), len(wanted)), dtype=np.uint8)
    now[: len(held)] = held
    spare = bytearray(difference.moves.spare_bytes)
    apply(difference.moves, now.data, memoryview(spare))
    for pull in difference.pulls:
        now[pull.offset : pull.end] = wanted[pull.offset : pull.end]
    return now


def _waves_are_free(difference: Difference) -> bool:
    """Whether no move of a wave writes what another one of it reads or writes."""
    moves = difference.moves
    for wave in np.unique(moves.waves).tolist():
        mine = np.flatnonzero(moves.waves == wave).tolist()
        for a in mine:
            to = range(int(moves.destinations[a]), int(moves.destinations[a] + moves.lengths[a]))
            for b in (b for b in mine if b != a):
                for begin in (int(moves.sources[b]), int(moves.destinations[b])):
                    if to.start < begin + int(moves.lengths[b]) and begin < to.stop:
                        return False
    return True


Names = st.lists(st.integers(0, 7), max_size=24)


@given(Names, Names)
@example([0, 1], [1, 0])
@example([0, 1, 2, 3], [3, 2, 1, 0])
@example([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6])
@example([0, 1, 2, 3, 4, 5], [6, 0, 1, 2, 3, 4])
@example([0, 1, 2, 3], [2, 0, 1, 3])
@example([], [1])
@example([1], [])
def test_what_is_held_becomes_what_is_wanted(before: list[int], after: list[int]) -> None:
    held, wanted = _memory(before), _memory(after)
    difference = _difference(held, wanted)
    assert (_landed(held, wanted, difference)[: len(wanted)] == wanted).all()
    assert difference.in_place_bytes + difference.moved_bytes + difference.pulled_bytes == len(wanted)
    assert difference.pulled_bytes == ROW * sum(name not in before for name in after)
    assert difference.in_place_bytes == ROW * sum(a == b for a, b in zip(before, after, strict=False))
    assert _waves_are_free(difference)
    assert _num_moved(difference) == difference.moved_bytes


def _num_moved(difference: Difference) -> int:
    moves = difference.moves
    return int(moves.lengths[moves.destinations < moves.spare_at].sum())


@st.composite
def _cut(draw: st.DrawFn, size: int) -> Rows:
    """Some rows of a memory, of any lengths, with gaps."""
    cuts = sorted(draw(st.sets(st.integers(0, size), min_size=2, max_size=14)))
    pairs = [(a, b - a) for a, b in pairwise(cuts) if draw(st.integers(0, 4))]
    return _rows([offset for offset, _ in pairs], [length for _, length in pairs])


@settings(max_examples=40)
@given(st.data())
def test_rows_of_any_lengths_and_places_come_together(data: Any) -> None:
    size = 60
    held = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), dtype=np.uint8)
    wanted = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), dtype=np.uint8)
    rows = data.draw(_cut(size)), data.draw(_cut(size))
    difference = _difference(held, wanted, rows, max_spare_bytes=data.draw(st.sampled_from([0, 5, 1000])))
    now = _landed(held, wanted, difference)
    for offset, length in zip(rows[1].offsets.tolist(), rows[1].lengths.tolist(), strict=True):
        assert (now[offset : offset + length] == wanted[offset : offset + length]).all()
    assert _waves_are_free(difference)


@given(st.permutations(range(12)), st.integers(0, 50), st.integers(1, 33))
def test_any_permutation_is_done_with_moves_alone_where_the_spare_is_large_enough(
    order: list[int], most: int, waves: int
) -> None:
    held, wanted = _memory(range(12)), _memory(order)
    before, module.MAX_WAVES = module.MAX_WAVES, waves
    try:
        free, tight = _difference(held, wanted), _difference(held, wanted, max_spare_bytes=most)
    finally:
        module.MAX_WAVES = before
    assert not free.pulls
    assert tight.moves.spare_bytes <= most
    for difference in (free, tight):
        assert (_landed(held, wanted, difference) == wanted).all()
        assert difference.in_place_bytes + difference.moved_bytes + difference.pulled_bytes == len(wanted)
        assert _num_moved(difference) == difference.moved_bytes
        assert _waves_are_free(difference)


@pytest.mark.parametrize("by", [1, 3, 500, 900])
def test_a_rolled_cache_is_one_move_and_one_pull(by: int) -> None:
    names = np.random.default_rng(0).integers(0, 256, (1000 + by, 16), dtype=np.uint8)
    held, wanted = names[:1000].reshape(-1), names[by:].reshape(-1)
    difference = _difference(held, wanted, (_even(held, 16), _even(wanted, 16)))
    assert len(difference.moves) == 1
    assert difference.moves.spare_bytes == 0
    assert difference.pulls == (Extent(offset=16 * (1000 - by), length=16 * by),)
    assert (_landed(held, wanted, difference) == wanted).all()


def test_a_cache_that_rolls_inside_each_of_many_lines_needs_one_wave() -> None:
    names = np.random.default_rng(0).integers(0, 256, (880, 9, 16), dtype=np.uint8)
    held, wanted = names[:, :6].reshape(-1), names[:, 3:].reshape(-1)
    difference = _difference(held, wanted, (_even(held, 16), _even(wanted, 16)))
    assert len(difference.moves) == len(difference.pulls) == 880
    assert set(difference.moves.waves.tolist()) == {0}
    assert difference.moved_bytes == difference.pulled_bytes == len(held) // 2


def test_a_swap_goes_through_one_spare_row() -> None:
    difference = _difference(_memory([1, 2, 3]), _memory([3, 2, 1]))
    assert difference.moves.spare_bytes == ROW
    assert difference.moved_bytes == 2 * ROW


def test_equal_rows_are_found_side_by_side() -> None:
    held = _memory([7] * 10 + list(range(10, 20)))
    wanted = _memory(list(range(10, 20)) + [7] * 10)
    difference = _difference(held, wanted)
    assert len(difference.moves) - (difference.moves.spare_bytes > 0) == 2


def test_rows_whose_digests_were_made_to_be_alike_are_found_as_fast_as_any() -> None:
    num, length = 100_000, 32
    rows = Rows(offsets=np.arange(num, dtype=np.int64) * length, lengths=np.full(num, length, dtype=np.int64))
    held = Held(rows, np.arange(0, 2 * num, 2, dtype=np.uint64))
    wanted = np.arange(num, dtype=np.uint64)[::-1].copy()
    begun = time.monotonic()
    found = held.find(wanted)
    assert time.monotonic() - begun < 5.0
    assert np.array_equal(found, np.where(wanted % 2 == 0, wanted.astype(np.int64) // 2, -1))


def test_rows_of_one_digest_and_two_lengths_are_not_taken_for_each_other() -> None:
    same: Digests = np.array([5], dtype=np.uint64)
    difference = reconcile(Held(_rows([0], [4]), same), _rows([0], [8]), same, 8)
    assert difference.pulled_bytes == 8
    difference = reconcile(Held(_rows([4], [4]), same), _rows([8], [8]), same, 16)
    assert difference.pulled_bytes == 8


def test_digests_that_are_not_of_these_rows_are_refused() -> None:
    none: Digests = np.empty(0, dtype=np.uint64)
    with pytest.raises(ValueError, match="0 digests of 1 rows"):
        Held(_rows([0], [4]), none)
    with pytest.raises(ValueError, match="0 digests of 1 rows"):
        reconcile(Held(_rows([], []), none), _rows([0], [4]), none, 8)


@pytest.mark.parametrize("shift", [ROW, 2 * ROW, -ROW, 3, 1000])
def test_a_row_is_taken_from_where_it_is_said_to_have_been_only_if_it_is_there(shift: int) -> None:
    held, wanted = _memory([0, 1, 2, 3, 1, 5]), _memory([1, 2, 3, 1, 5, 6])
    rows = _even(held)
    before, after = Held(rows, row_digests(held, rows)), row_digests(wanted, rows)
    found = reconcile(before, rows, after, len(held), came_from=lambda: rows.offsets + shift)
    assert found.pulled_bytes == ROW
    assert (_landed(held, wanted, found) == wanted).all()
    if shift == ROW:
        assert len(found.moves) == 1
