"""What a worker measured of itself."""

from worldmove.worker.meter import Meter


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
