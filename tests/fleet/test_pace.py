"""What a block takes with its device to itself, from blocks of which some were computed beside others."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.fleet.pace import NUM_KEPT, NUM_RECENT, Load, Pace, Paces

PERIOD_S = 0.48


def pace_of(blocks: Sequence[tuple[str, float, float]]) -> Pace:
    """A device with such blocks: worker, when it ended, how long it took."""
    pace = Pace()
    for worker, ended_at, compute_s in sorted(blocks, key=lambda block: block[1]):
        pace.block(worker, ended_at, compute_s)
    return pace


def played(worker: str, phase: float, took_s: float, number: int = 20) -> list[tuple[str, float, float]]:
    return [(worker, phase + PERIOD_S * block + took_s, took_s) for block in range(number)]


def test_of_a_device_with_one_worker_every_block_was_alone() -> None:
    assert pace_of(played("a", 0.0, 0.15)).block_s() == pytest.approx(0.15)


def test_many_blocks_take_what_they_took_by_mean_and_one_that_is_to_be_in_time_as_long_as_the_slow_ones() -> None:
    blocks = [("a", PERIOD_S * (number + 1), 0.2 if number % 10 == 0 else 0.1) for number in range(60)]
    pace = pace_of(blocks)
    assert pace.block_s() == pytest.approx(0.2)
    assert pace.long_run_s() == pytest.approx(0.118, abs=0.002)
    assert Pace().long_run_s() is None
    assert Paces().long_run_s("gpu") is None


def test_of_blocks_beside_each_other_nothing_is_known() -> None:
    assert pace_of([*played("a", 0.0, 0.26), *played("b", 0.1, 0.26)]).block_s() is None
    assert Pace().block_s() is None
    assert Paces().block_s("gpu") is None


def test_of_blocks_half_a_period_apart_all_were_alone_but_for_the_way_of_their_words() -> None:
    blocks = [*played("a", 0.0, 0.15), *played("b", 0.148, 0.15)]
    assert pace_of(blocks).block_s() == pytest.approx(0.15)


def test_blocks_that_a_follower_was_beside_do_not_count() -> None:
    beside = [("a", 100.0 + PERIOD_S * block, 0.3) for block in range(500)]
    follower = [("b", 100.0 + 0.3 * block, 0.3) for block in range(800)]
    assert pace_of([*played("a", 0.0, 0.15), *beside, *follower]).block_s() == pytest.approx(0.15)


def test_a_device_whose_blocks_have_become_slower_is_known_as_such_after_a_while() -> None:
    number = NUM_KEPT + NUM_RECENT
    slower = [("a", 100.0 + PERIOD_S * block, 0.2) for block in range(number)]
    assert pace_of([*played("a", 0.0, 0.15), *slower]).block_s() == pytest.approx(0.2)


FEW = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=10)
"""With twenty in all, the high quantile is the longest one."""


@given(FEW, FEW)
def test_what_is_known_was_measured_of_a_block_beside_which_nobody_computed(
    here: list[tuple[int, int]], there: list[tuple[int, int]]
) -> None:
    blocks = [(name, float(end), float(took)) for name, of in (("a", here), ("b", there)) for end, took in of]
    alone = [
        took
        for name, end, took in blocks
        if not any(other != name and min(end, at) - max(end - took, at - long) > 0 for other, at, long in blocks)
    ]
    assert pace_of(blocks).block_s() == (max(alone) if alone else None)


def test_a_follower_can_have_what_the_worlds_of_all_workers_leave() -> None:
    load = Load(period_s=PERIOD_S, block_s=0.15, own=1, others=(1,))
    assert load.share(0.15) == pytest.approx(0.3 / PERIOD_S)
    assert load.beside_s == pytest.approx(0.15 / (1 - 0.15 / PERIOD_S))


def test_where_another_worker_needs_more_than_its_equal_part_a_follower_can_have_nothing() -> None:
    """The follower gives way to nobody there: two workers have half of the device each."""
    assert Load(period_s=PERIOD_S, block_s=0.15, own=0, others=(1,)).share(0.15) < 1
    assert Load(period_s=PERIOD_S, block_s=0.15, own=0, others=(2,)).share(0.15) == 1
    assert Load(period_s=PERIOD_S, block_s=0.15, own=2).share(0.15) < 1


def test_what_a_block_takes_beside_others_is_not_known_where_there_are_none_or_nothing_is_measured() -> None:
    assert Load(period_s=PERIOD_S, block_s=0.15, own=3).beside_s == 0
    assert Load(period_s=PERIOD_S, block_s=None, own=1, others=(1,)).beside_s == 0
    assert Load(period_s=0.0, block_s=0.15, own=1, others=(1,)).beside_s == 0
    assert Load(period_s=PERIOD_S, block_s=0.25, own=1, others=(1, 1)).beside_s == 0
