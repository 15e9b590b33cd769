import pytest

from bench.numbers import median_interval, quantile, spread


def test_a_quantile_lies_between_its_two_neighbours() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([1.0, 2.0], 0.0) == 1.0
    assert quantile([7.0], 0.99) == 7.0


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
    assert spread([]) == {"n": 0}


def test_the_interval_holds_the_median_and_narrows_with_more_values() -> None:
    few, many = [1.0, 1.1, 0.9, 1.2, 0.8], [1.0, 1.1, 0.9, 1.2, 0.8] * 40
    low, high = median_interval(few)
    assert low <= 1.0 <= high
    narrow_low, narrow_high = median_interval(many)
    assert narrow_high - narrow_low < high - low


def test_the_interval_is_the_same_in_every_run() -> None:
    values = [1.0, 1.4, 0.7, 1.1]
    assert median_interval(values) == median_interval(values)
