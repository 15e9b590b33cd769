"""What a worker measured of itself."""

import pytest

from worldmove.worker.meter import HIGH, Meter


def test_before_the_first_block_the_warm_up_speaks() -> None:
    assert Meter({"block_s": 0.25}).block_s(0.95) == 0.25


def test_a_high_quantile_sees_the_slow_blocks_and_forgets_the_oldest() -> None:
    meter = Meter({"block_s": 9.0})
    for number in range(1000):
        meter.block(5.0 if number < 500 else 0.1)
    assert meter.block_s(0.95) == 0.1
    for _ in range(30):
        meter.block(0.4)
    assert meter.block_s(0.95) == 0.4
    assert meter.block_s(0.5) == 0.1


def test_a_turn_is_told_in_the_long_run_and_a_spare_block_is_reckoned_to_take_a_long_one() -> None:
    meter = Meter({"block_s": 0.25})
    assert meter.turn_s == 0
    for number in range(100):
        meter.block(0.3)
        meter.turn(0.01 if number % 10 else 0.1)
    assert 0.019 < meter.turn_s < 0.025
    assert meter.spare_s == pytest.approx(0.4)
    meter.told(0.4)
    assert meter.spare_s == pytest.approx(0.5)


def test_a_spare_block_takes_what_the_server_says_that_one_takes_beside_other_workers() -> None:
    meter = Meter({"block_s": 0.25})
    meter.block(0.3)
    assert meter.spare_s == 0.3
    meter.told(0.2)
    assert (meter.spare_s, meter.block_s(HIGH)) == (0.2, 0.3)
    meter.told(0.0)
    assert meter.spare_s == 0.3
