import pytest

from worldmove.units import bytes_text, round_up, seconds_text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (22_123_456, "22.1 MB"),
        (999_600_000, "1.00 GB"),
        (10**13, "10000 GB"),
    ],
)
def test_a_size_is_said_with_three_digits(num_bytes: int, text: str) -> None:
    assert bytes_text(num_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 µs"),
        (0.0188, "18.8 ms"),
        (2.5, "2.50 s"),
        (0.9996, "1.00 s"),
        (0.00042, "420 µs"),
        (-0.01, "-10.0 ms"),
    ],
)
def test_a_time_is_said_with_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(("number", "multiple", "result"), [(0, 256, 0), (1, 256, 256), (256, 256, 256), (-1, 256, 0)])
def test_rounding_up_never_rounds_down(number: int, multiple: int, result: int) -> None:
    assert round_up(number, multiple) == result
