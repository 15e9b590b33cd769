"""What many blocks take together, of times that scatter."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.worker.long_run import FEW, in_the_long_run

times = st.lists(st.floats(0.001, 1.0), max_size=80)


def test_of_few_the_longest_counts_and_of_none_nothing() -> None:
    assert in_the_long_run([]) == 0.0
    assert in_the_long_run([0.1, 0.3, 0.2]) == 0.3


@given(times)
def test_it_is_no_less_than_the_mean_and_as_good_as_that_where_all_are_alike(found: list[float]) -> None:
    assert not found or in_the_long_run(found) >= fmean(found) - 1e-12
    assert in_the_long_run([0.2] * len(found)) == pytest.approx(0.2 if found else 0.0)


def test_one_long_block_in_twenty_is_no_reason_to_expect_twenty_of_them() -> None:
    scattered = [0.2 if number % 20 == 0 else 0.1 for number in range(100)]
    assert sorted(scattered)[95] == 0.2
    assert 0.105 < in_the_long_run(scattered) < 0.11
    assert in_the_long_run(scattered[: FEW - 1]) == 0.2
