"""What the bench of predictions says of its rows."""

from typing import Any

from bench.prediction import summary_of


def row(expected_ms: float, pause_ms: float | None, **changes: Any) -> dict[str, Any]:
    told = {
        "strategy": "boundary copy",
        "to": "worker-2",
        "outcome": "refused" if pause_ms is None else "committed",
        "reason": "too_slow" if pause_ms is None else "done",
        "expected_ms": expected_ms,
        "pause_ms": pause_ms,
        "gap_ms": 0.0,
        "digests_equal": pause_ms is not None,
    }
    return told | changes


def test_an_error_counts_against_a_share_of_the_pause_or_two_milliseconds() -> None:
    assert summary_of([row(12.0, 10.0)])["all"]["of_allowance"]["max"] == 1.0
    assert summary_of([row(115.0, 100.0)])["all"]["of_allowance"]["max"] == 1.0
    assert summary_of([row(115.0, 100.0)])["goal_met"]
    assert not summary_of([row(116.0, 100.0)])["goal_met"]


def test_what_was_refused_is_counted_and_no_error() -> None:
    found = summary_of([row(10.0, 10.0), row(900.0, None)])
    assert (found["moves"], found["refused"]) == (1, {"too_slow": 1})


def test_the_first_of_a_kind_has_had_no_like() -> None:
    found = summary_of([row(30.0, 10.0), row(10.0, 10.0), row(50.0, 10.0, strategy="replay"), row(11.0, 10.0)])
    assert found["after_the_first_of_its_kind"]["error_ms"]["max"] == 1.0
    assert found["all"]["error_ms"]["max"] == 40.0
    assert list(found["by_strategy"]) == ["boundary copy", "replay"]


def test_a_move_that_made_a_block_late_has_missed_its_horizon() -> None:
    assert summary_of([row(10.0, 10.0, gap_ms=3.0), row(10.0, 10.0)])["moves_that_missed_their_horizon"] == 1
