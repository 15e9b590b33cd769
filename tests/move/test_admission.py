"""Admission: the terms, what stands in the way, and what would help."""

from dataclasses import replace
from typing import Any

import pytest

from worldmove.move.admission import COMMIT_S, FREEZE_S, Measured, admit

FAST = Measured(
    num_bytes=20_000_000,
    source_hash_rate=10e9,
    path_rate=4e9,
    destination_hash_rate=8e9,
    horizon_s=0.250,
)


def test_a_move_that_fits_is_admitted_with_its_terms_and_slack() -> None:
    verdict = admit(FAST)
    assert verdict.admitted
    assert verdict.terms == {"freeze": FREEZE_S, "copy": 0.005, "verify": 0.0025, "commit": COMMIT_S}
    assert verdict.slack_s == pytest.approx(0.250 - 0.0075 - FREEZE_S - COMMIT_S)


def test_the_sources_passes_count_only_where_they_are_the_slower_of_two_that_run_side_by_side() -> None:
    verdict = admit(replace(FAST, source_hash_rate=1e9))
    assert verdict.terms["copy"] == verdict.terms["verify"] == 0.020


def test_a_move_that_takes_exactly_the_horizon_is_admitted_and_one_that_takes_more_is_not() -> None:
    expected = admit(FAST).expected_s
    assert admit(replace(FAST, horizon_s=expected)).admitted
    assert admit(replace(FAST, horizon_s=expected * 0.999)).reason == "too_slow"


def test_a_reject_has_its_numbers() -> None:
    verdict = admit(replace(FAST, num_bytes=1_670_000_000))
    assert (verdict.reason, verdict.admitted) == ("too_slow", False)
    assert "moving 1.67 GB is expected to take 640 ms, and the next block is due in 250 ms" in verdict.detail
    assert "the largest part is copy, 418 ms" in verdict.detail
    assert verdict.slack_s is not None
    assert verdict.slack_s < 0


@pytest.mark.parametrize("factor", [1.25, 1.5, 2.0, 3.0, 4.0, 8.0])
def test_the_cheapest_change_would_admit_it_and_the_next_cheaper_would_not(factor: float) -> None:
    slow = replace(FAST, path_rate=1e8, horizon_s=0.0)
    needed = admit(replace(slow, path_rate=1e8 * factor)).expected_s
    rejected = replace(slow, horizon_s=needed * 1.0001)
    assert admit(rejected).cheapest == f"a copy that is {factor:g} times as fast"
    assert admit(replace(rejected, path_rate=1e8 * factor)).admitted


def test_where_no_rate_would_help_the_horizon_is_what_has_to_change() -> None:
    assert "more until the next block is due" in admit(replace(FAST, horizon_s=0.001)).cheapest


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("source_hash_rate", "the source's hash rate"),
        ("path_rate", "the rate of the path between the two workers"),
        ("destination_hash_rate", "the destination's hash rate"),
        ("horizon_s", "the time until the next block is due"),
    ],
)
def test_an_unknown_measurement_is_a_reject_that_names_it(field: str, words: str) -> None:
    unknown: dict[str, Any] = {field: None}
    verdict = admit(replace(FAST, **unknown))
    assert verdict.reason == "not_measured"
    assert words in verdict.detail
    assert verdict.slack_s is None


@pytest.mark.parametrize(
    ("hindrance", "reason"),
    [
        ({"same_worker": True}, "same_worker"),
        ({"ledger_healthy": False}, "ledger"),
        ({"environment_differs": ("cpu is a here and b there",)}, "environment"),
        ({"num_slots_free": 0}, "no_slot"),
    ],
)
def test_what_stands_in_the_way_is_a_reject_however_fast_the_path(hindrance: dict[str, Any], reason: str) -> None:
    verdict = admit(replace(FAST, horizon_s=float("inf"), **hindrance))
    assert verdict.reason == reason
    assert verdict.detail


def test_a_session_that_nobody_waits_for_is_always_in_time() -> None:
    assert admit(replace(FAST, num_bytes=10**13, horizon_s=float("inf"))).admitted
