"""Extents as arrays do what extents do one by one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.state.extent import Extent
from worldmove.state.runs import Runs

Pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=12)


def _extents(pairs: list[tuple[int, int]]) -> list[Extent]:
    """Ascending ones: each so many bytes after the one before."""
    found, at = [], 0
    for gap, length in pairs:
        found.append(Extent(offset=at + gap, length=length))
        at = found[-1].end
    return found


def _bytes(extents: list[Extent]) -> list[int]:
    return [at for extent in extents for at in range(extent.offset, extent.end)]


@given(Pairs)
def test_runs_are_the_extents_that_they_were_made_of(pairs: list[tuple[int, int]]) -> None:
    extents = _extents(pairs)
    runs = Runs.of(extents)
    assert Runs.of(runs) is runs
    assert runs == extents
    assert [runs[index] for index in range(len(runs))] == extents
    assert runs[1:3] == extents[1:3]
    assert runs.num_bytes == len(_bytes(extents))


@given(Pairs, st.integers(1, 9))
def test_batches_have_every_byte_once_in_order_and_all_but_the_last_are_full(
    pairs: list[tuple[int, int]], num_bytes: int
) -> None:
    extents = _extents(pairs)
    batches = list(Runs.of(extents).batches(num_bytes))
    assert _bytes([extent for batch in batches for extent in batch]) == _bytes(extents)
    assert all(batch.num_bytes == num_bytes for batch in batches[:-1])
    assert all(0 < batch.num_bytes <= num_bytes for batch in batches)
    assert all(extent.length for batch in batches for extent in batch)


@given(Pairs, st.integers(0, 40))
def test_a_part_has_as_many_bytes_as_are_asked_for_and_the_rest_has_the_others(
    pairs: list[tuple[int, int]], num_bytes: int
) -> None:
    extents = _extents(pairs)
    runs = Runs.of(extents)
    first, rest = runs.parted(num_bytes)
    assert _bytes([*first, *rest]) == _bytes(extents)
    assert first.num_bytes == min(num_bytes, len(_bytes(extents)))
    assert runs == extents


@given(Pairs, st.integers(0, 6))
def test_joined_runs_have_every_byte_and_no_gap_that_is_larger(pairs: list[tuple[int, int]], gap: int) -> None:
    extents = _extents(pairs)
    joined = list(Runs.of(extents).joined(gap))
    assert set(_bytes(extents)) <= set(_bytes(joined))
    some = [extent for extent in extents if extent.length]
    gaps = [after.offset - before.end for before, after in pairwise(some)]
    assert len(joined) == sum(each > gap for each in gaps) + bool(some)


def test_runs_that_do_not_ascend_are_not_joined() -> None:
    runs = Runs(np.array([8, 0]), np.array([4, 4]))
    assert runs.joined(100) == [Extent(offset=8, length=4), Extent(offset=0, length=4)]


def test_offsets_and_lengths_are_as_many() -> None:
    with pytest.raises(ValueError, match="1 offsets and 2 lengths"):
        Runs(np.array([8]), np.array([4, 4]))
