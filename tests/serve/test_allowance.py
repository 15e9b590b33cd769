"""A pace: so many at once, and so many a second for ever after."""

import pytest

from worldmove.serve.allowance import Allowance, Pace


def test_a_burst_is_taken_at_once_and_then_the_pace_holds() -> None:
    allowance = Allowance(Pace(burst=3, per_s=2))
    assert [allowance.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [allowance.take(now) for now in (0.4, 0.5, 0.9, 1.0)] == [False, True, False, True]


def test_what_was_not_used_adds_up_to_a_burst_and_no_further() -> None:
    allowance = Allowance(Pace(burst=2, per_s=1))
    assert allowance.take(0.0, 2)
    assert not allowance.take(1000.0, 3)
    assert allowance.take(1000.0, 2)


def test_what_is_owed_is_waited_for() -> None:
    allowance = Allowance(Pace(burst=1, per_s=4))
    assert allowance.owe(0.0) == 0.0
    assert allowance.owe(0.0) == pytest.approx(0.25)
    assert allowance.owe(0.0) == pytest.approx(0.5)
    assert allowance.owe(10.0) == 0.0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    allowance = Allowance(Pace(burst=1, per_s=1))
    assert allowance.take(100.0)
    assert not allowance.take(0.0)
