from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.state.extent import Extent
from worldmove.state.geometry import bounds, byte_runs, merge, num_pieces, overlap, to_extents

Views = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=4)


def _brute(offset: int, size: int, dims: list[tuple[int, int]]) -> set[int]:
    starts = {offset}
    for count, stride in dims:
        starts = {start + i * stride for start in starts for i in range(count)}
    return {start + i for start in starts for i in range(size)}


@given(st.integers(1, 4), Views)
def test_the_runs_of_a_view_are_its_bytes(size: int, dims: list[tuple[int, int]]) -> None:
    shape, strides = [n for n, _ in dims], [s for _, s in dims]
    runs = byte_runs(100, size, shape, strides)
    expected = _brute(100, size, dims)
    assert {byte for begin, end in runs.tolist() for byte in range(begin, end)} == expected
    assert all(begin < end for begin, end in runs.tolist())
    assert all(end < begin for (_, end), (begin, _) in zip(runs.tolist()[:-1], runs.tolist()[1:], strict=True))
    assert len(runs) <= num_pieces(size, shape, strides)
    low, high = bounds(100, size, shape, strides)
    assert not expected or (min(expected), max(expected) + 1) == (low, high)


@given(st.lists(st.tuples(st.integers(0, 60), Views), min_size=1, max_size=3))
def test_the_union_of_views_has_every_byte_once(views: list[Any]) -> None:
    parts = [byte_runs(o + 200, 2, [n for n, _ in dims], [s for _, s in dims]) for o, dims in views]
    extents = to_extents(merge(parts))
    expected = set().union(*(_brute(o + 200, 2, dims) for o, dims in views))
    assert sum(extent.length for extent in extents) == len(expected)
    assert {byte for e in extents for byte in range(e.offset, e.end)} == expected


@given(Views, st.integers(60, 140), st.integers(0, 5))
def test_overlap_is_seen_to_the_byte(dims: list[tuple[int, int]], offset: int, length: int) -> None:
    runs = byte_runs(100, 1, [n for n, _ in dims], [s for _, s in dims])
    expected = bool(_brute(100, 1, dims) & set(range(offset, offset + length)))
    assert overlap(runs, [Extent(offset=offset, length=length)]) == expected


@pytest.mark.parametrize(
    ("shape", "strides", "pieces"),
    [
        ((4, 5), (20, 4), 1),
        ((5, 4), (4, 20), 1),
        ((4, 5), (24, 4), 4),
        ((9,), (0,), 1),
        ((3, 3), (4, 4), 1),
        ((), (), 1),
    ],
)
def test_a_dense_view_is_one_piece(shape: tuple[int, ...], strides: tuple[int, ...], pieces: int) -> None:
    assert num_pieces(4, shape, strides) == pieces
    assert len(byte_runs(0, 4, shape, strides)) == pieces


def test_runs_far_out_do_not_wrap() -> None:
    runs = byte_runs(1 << 46, 4, (2, 2), (1 << 47, 8))
    assert runs.dtype == np.int64
    assert int(runs[-1, 1]) == (1 << 46) + (1 << 47) + 12
