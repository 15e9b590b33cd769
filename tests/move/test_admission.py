"""Whether a move fits before the next block."""

from dataclasses import replace

import pytest

from worldmove.move.admission import Measured, admit

ENOUGH = Measured(
    num_bytes=20_000_000,
    source_hash_rate=10e9,
    destination_copy_rate=5e9,
    destination_hash_rate=10e9,
    horizon_s=0.1,
)


def test_a_move_is_admitted_if_and_only_if_its_terms_fit_the_horizon() -> None:
    expected_s = admit(ENOUGH).expected_s
    assert admit(ENOUGH).reason == ""
    assert admit(replace(ENOUGH, horizon_s=expected_s)).reason == ""
    assert admit(replace(ENOUGH, horizon_s=expected_s * 0.999)).reason == "too_slow"


def test_a_reject_names_the_largest_term_and_the_numbers() -> None:
    verdict = admit(replace(ENOUGH, destination_copy_rate=1e8))
    assert verdict.reason == "too_slow"
    assert "the largest part is copy, 200 ms" in verdict.detail
    assert "20.0 MB" in verdict.detail


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        (replace(ENOUGH, source_hash_rate=None), "the source's hash rate"),
        (replace(ENOUGH, destination_copy_rate=None), "the destination's copy rate"),
        (replace(ENOUGH, destination_hash_rate=None), "the destination's hash rate"),
        (replace(ENOUGH, horizon_s=None), "the time until the next block is due"),
    ],
)
def test_what_was_not_measured_rejects_and_is_named(known: Measured, missing: str) -> None:
    verdict = admit(known)
    assert verdict.reason == "not_measured"
    assert verdict.detail == f"not measured yet: {missing}"


def test_where_nobody_waits_any_pause_fits() -> None:
    assert admit(replace(ENOUGH, destination_copy_rate=1.0, horizon_s=float("inf"))).reason == ""


def test_every_term_grows_with_the_bytes_or_stays() -> None:
    small, large = admit(ENOUGH).terms, admit(replace(ENOUGH, num_bytes=ENOUGH.num_bytes * 2)).terms
    assert all(large[name] >= small[name] for name in small)
    assert [name for name in small if large[name] == small[name]] == ["freeze", "commit"]
