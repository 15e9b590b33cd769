"""Admission: the terms, what stands in the way, and which way a verdict turns as a measurement changes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.move.measuring import FAST, anything, roomy
from worldmove.move.admission import Verdict, admit
from worldmove.move.measured import COMMIT_S, FREEZE_S, INSTALL_S, WORDS, Measured
from worldmove.move.reckoning import RECKONERS
from worldmove.move.strategy import Strategy

ALL = tuple(Strategy)
every = pytest.mark.parametrize("strategy", ALL, ids=[strategy.value for strategy in ALL])


def times(verdict: Verdict) -> dict[str, float]:
    return {term.name: term.seconds for term in verdict.terms}


@every
def test_a_move_that_fits_is_admitted_with_its_terms_and_slack(strategy: Strategy) -> None:
    verdict = admit(FAST, strategy)
    assert verdict.admitted
    assert verdict.slack_s == pytest.approx(0.250 - sum(times(verdict).values()))
    assert all(term.how and term.seconds >= 0 for term in (*verdict.terms, *verdict.before))


def test_a_boundary_copys_terms() -> None:
    assert times(admit(FAST)) == pytest.approx(
        {"freeze": FREEZE_S, "copy": 0.005, "verify": INSTALL_S + 0.0025, "commit": COMMIT_S}
    )
    assert admit(FAST).before == ()


def test_the_sources_passes_count_only_where_they_are_the_slower_of_two_that_run_side_by_side() -> None:
    found = times(admit(replace(FAST, source_hash_rate=1e9)))
    assert found["copy"] == found["verify"] == 0.020


def test_a_pre_copy_leaves_the_new_bytes_of_one_block_where_the_path_carries_them_in_one() -> None:
    verdict = admit(FAST, Strategy.PRE_COPY)
    found = times(verdict)
    assert found["rows"] == pytest.approx(0.002)
    assert found["move rows"] == pytest.approx(6e6 / 20e9)
    assert found["copy"] == pytest.approx(20e6 / 10e9)  # 1.5 ms of wire, beside a pass of 2 ms
    assert [term.name for term in verdict.before] == ["base", "rows"]


def test_a_pre_copy_makes_a_round_where_that_leaves_less_than_the_base() -> None:
    slow = replace(FAST, path_rate=10e6, new_bytes=1_000_000, dirty_bytes=4_000_000, horizon_s=1.0)
    verdict = admit(slow, Strategy.PRE_COPY)
    # The base takes 2 s: five blocks' new bytes, 5 MB. A round takes 0.4 s, and leaves those of one.
    assert [term.name for term in verdict.before] == ["base", "rows", "round"]
    assert times(verdict)["copy"] == pytest.approx(0.1)
    impatient = admit(replace(slow, patience_s=2.1), Strategy.PRE_COPY)
    assert [term.name for term in impatient.before] == ["base", "rows"]
    assert times(impatient)["copy"] == pytest.approx(0.5)


def test_what_is_final_in_time_is_not_left_for_the_boundary_but_for_the_last_leaf() -> None:
    on_time = times(admit(replace(FAST, source_hash_rate=1e12), Strategy.STREAMING))
    assert on_time["copy"] == pytest.approx(500_000 / 4e9)
    late = times(admit(replace(FAST, source_hash_rate=1e12, path_rate=1e8), Strategy.STREAMING))
    assert late["copy"] == pytest.approx((6e6 - 0.02 * 1e8) / 1e8)


def test_a_followed_component_does_not_travel() -> None:
    assert FAST.final is not None
    followed = replace(FAST.final, num_bytes=2_000_000, followed_bytes=4_000_000)
    slow = replace(FAST, path_rate=5e6, horizon_s=1.0)
    assert admit(slow, Strategy.STREAMING).reason == "falls_behind"  # 6 MB in each half second
    assert times(admit(replace(slow, final=followed), Strategy.STREAMING))["copy"] == pytest.approx(1.9e6 / 5e6)


def test_the_pause_of_a_replay_has_no_term_that_grows_with_the_path() -> None:
    fast, slow = (admit(replace(FAST, path_rate=rate), Strategy.REPLAY) for rate in (1e12, 1e6))
    assert times(fast) == times(slow)
    assert slow.before_s > fast.before_s + 19


def test_a_follower_is_expected_behind_its_workers_own_worlds_until_a_replay_has_measured_it() -> None:
    """20 MB: a pass of the source takes 2 ms, one of the destination 2.5 ms, and the freeze 4 ms."""
    assert times(admit(FAST, Strategy.REPLAY))["meet"] == pytest.approx(0.2 * 0.1 - 0.004)
    late = replace(FAST, fixed=replace(FAST.fixed, meet_s=0.007, num_moves=3))
    assert times(admit(late, Strategy.REPLAY))["meet"] == pytest.approx(0.003)
    assert admit(late, Strategy.REPLAY).expected_s == pytest.approx(0.007 + 0.0025 + 0.006)


def test_a_replay_whose_follower_stands_still_already_takes_what_its_source_takes() -> None:
    early = replace(FAST, fixed=replace(FAST.fixed, meet_s=0.0, num_moves=3))
    found = times(admit(early, Strategy.REPLAY))
    assert (found["freeze"], found["meet"], found["verify"]) == pytest.approx((0.004, 0.002, 0.002))
    slow_there = times(admit(replace(early, destination_hash_rate=1e9), Strategy.REPLAY))
    assert slow_there["freeze"] + slow_there["meet"] + slow_there["verify"] == pytest.approx(0.020)


def test_a_replay_catches_up_with_what_was_played_since_its_snapshot() -> None:
    verdict = admit(replace(FAST, path_rate=10e6), Strategy.REPLAY)
    before = {term.name: term.seconds for term in verdict.before}
    lag_s = before["aside"] + before["snapshot"] + before["check"]
    # While the lag and what is added to it meanwhile are stepped, one block after another, as many periods go by.
    num_blocks = (lag_s + before["catch up"]) / 0.5
    assert num_blocks * 0.1 / (1 - 0.2) == pytest.approx(before["catch up"])


def test_a_replay_that_would_never_catch_up_is_rejected_whatever_its_horizon() -> None:
    busy = replace(FAST, utilisation=0.8, horizon_s=float("inf"))
    assert admit(busy, Strategy.REPLAY).reason == "falls_behind"
    assert "100 ms there" in admit(busy, Strategy.REPLAY).detail
    assert admit(replace(busy, block_s=0.099), Strategy.REPLAY).admitted
    assert admit(busy, Strategy.BOUNDARY_COPY).admitted


def test_a_snapshot_needs_a_place_at_the_source_and_a_gap_to_be_copied_aside_in() -> None:
    full = admit(replace(FAST, num_source_slots_free=0), Strategy.REPLAY)
    assert (full.reason, full.detail) == ("no_slot", "the source has no place for a snapshot")
    assert admit(replace(FAST, num_source_slots_free=0), Strategy.PRE_COPY).admitted
    assert admit(replace(FAST, copy_rate=50e6), Strategy.REPLAY).reason == "aside"


@every
def test_a_move_that_takes_exactly_the_horizon_is_admitted_and_one_that_takes_more_is_not(strategy: Strategy) -> None:
    expected = admit(FAST, strategy).expected_s
    assert admit(replace(FAST, horizon_s=expected), strategy).admitted
    assert admit(replace(FAST, horizon_s=expected * 0.999), strategy).reason == "too_slow"


def test_where_nobody_waits_a_move_may_take_as_long_as_its_ends_hold_a_session_still_and_no_longer() -> None:
    resting = replace(FAST, horizon_s=float("inf"), still_s=2.0, path_rate=12.5e6)
    assert admit(resting).admitted
    slow = admit(replace(resting, path_rate=5e6))
    assert slow.reason == "too_slow"
    assert "no session is held still for longer than 2.00 s; the largest part is copy" in slow.detail
    assert admit(replace(resting, path_rate=5e6), Strategy.REPLAY).admitted


@pytest.mark.parametrize("strategy", ALL[1:])
def test_what_comes_before_the_pause_has_to_fit_into_the_patience(strategy: Strategy) -> None:
    needed = admit(FAST, strategy).before_s
    assert admit(replace(FAST, patience_s=needed), strategy).admitted
    impatient = admit(replace(FAST, patience_s=needed * 0.999), strategy)
    assert impatient.reason == "too_long"
    assert "the largest part is" in impatient.detail


def test_a_reject_has_its_numbers() -> None:
    verdict = admit(replace(FAST, num_bytes=1_670_000_000))
    assert (verdict.reason, verdict.admitted) == ("too_slow", False)
    assert "moving 1.67 GB is expected to take 640 ms, and the next block is due in 250 ms" in verdict.detail
    assert "the largest part is copy, 418 ms" in verdict.detail
    assert verdict.slack_s is not None
    assert verdict.slack_s < 0


@pytest.mark.parametrize("field", WORDS)
@every
def test_an_unknown_measurement_rejects_the_strategies_that_need_it_and_is_named(
    strategy: Strategy, field: str
) -> None:
    unknown: dict[str, Any] = {field: None}
    verdict = admit(replace(FAST, **unknown), strategy)
    if field in RECKONERS[strategy].needs:
        assert (verdict.reason, verdict.terms) == ("not_measured", ())
        assert WORDS[field] in verdict.detail
        assert verdict.slack_s is None
    else:
        assert verdict.admitted


@pytest.mark.parametrize(
    ("hindrance", "reason"),
    [
        ({"same_worker": True}, "same_worker"),
        ({"ledger_healthy": False}, "ledger"),
        ({"environment_differs": ("cpu is a here and b there",)}, "environment"),
        ({"num_slots_free": 0}, "no_slot"),
    ],
)
@every
def test_what_stands_in_the_way_is_a_reject_however_fast_the_path(
    strategy: Strategy, hindrance: dict[str, Any], reason: str
) -> None:
    verdict = admit(replace(FAST, horizon_s=float("inf"), **hindrance), strategy)
    assert verdict.reason == reason
    assert verdict.detail


def test_a_session_that_nobody_waits_for_is_always_in_time() -> None:
    assert admit(replace(FAST, num_bytes=10**13, horizon_s=float("inf"))).admitted


FIELDS = (
    *((name, 1) for name in ("path_rate", "source_hash_rate", "destination_hash_rate", "row_rate", "copy_rate")),
    *(("horizon_s", 1), ("patience_s", 1), ("block_s", -1), ("utilisation", -1)),
)


@every
@settings(max_examples=150)
@given(measured=anything(), field=st.sampled_from(FIELDS), factor=st.floats(1.0, 1e3))
def test_no_verdict_gets_worse_as_a_measurement_gets_better(
    strategy: Strategy, measured: Measured, field: tuple[str, int], factor: float
) -> None:
    name, towards = field
    changed: dict[str, Any] = {name: getattr(measured, name) * factor**towards}
    before, after = admit(roomy(measured), strategy), admit(replace(roomy(measured), **changed), strategy)
    assert after.admitted or not before.admitted
    if before.terms and after.terms and name != "patience_s":
        assert after.expected_s <= before.expected_s
