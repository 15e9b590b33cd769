"""Admission: the terms, what stands in the way, and which way a verdict turns as a measurement changes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.move.measuring import FAST, anything, roomy
from worldmove.move.admission import Verdict, admit
from worldmove.move.measured import COMMIT_S, FREEZE_S, INSTALL_S, WORDS, Fixed, Measured
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.reckoning.difference import SECOND
from worldmove.move.reckoning.reckoners import RECKONERS
from worldmove.move.reckoning.rest import REST, STANDS, rest_s
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
        {
            "freeze": FREEZE_S,
            "boundary": 0.0,
            "land": 0.005,
            "install": INSTALL_S,
            "verify": 0.0025,
            "commit": COMMIT_S,
        }
    )
    assert admit(FAST).before == ()


def test_the_sources_passes_count_only_where_they_are_the_slower_of_two_that_run_side_by_side() -> None:
    found = admit(replace(FAST, source_hash_rate=1e9))
    assert times(found)["land"] == pytest.approx(0.005)
    # The first pass, of 20 ms, is over 15 ms after the landing; then comes the second.
    assert found.expected_s == pytest.approx(FREEZE_S + 0.040 + COMMIT_S)
    assert "after a first one that is over 15.0 ms after the landing" in found.terms[-2].how


def test_a_pre_copy_leaves_the_new_bytes_of_one_block_where_the_path_carries_them_in_one() -> None:
    verdict = admit(FAST, Strategy.PRE_COPY)
    found = times(verdict)
    assert found["rows"] == pytest.approx(0.002)
    assert found["reconcile"] == pytest.approx(0.002)
    assert found["moves"] == pytest.approx(6e6 / 20e9)
    assert found["land"] == pytest.approx(6e6 / 4e9)
    assert [term.name for term in verdict.before] == ["base", "rows", "round", "settle"]


def test_what_does_not_come_over_at_one_boundary_is_left_at_the_next_but_for_what_is_written_again() -> None:
    """12 MB differ, and 5 come over until the next boundary: of 7 that are behind a block of 3 MB writes a quarter."""
    slow = replace(FAST, path_rate=10e6, new_bytes=3_000_000, horizon_s=1.0)
    verdict = admit(slow, Strategy.PRE_COPY)
    assert [term.seconds for term in verdict.before] == pytest.approx([2.0, 0.002, 2.002, SECOND * 0.5])
    assert times(verdict)["land"] == pytest.approx((3e6 + 7e6 * 0.75) / 10e6)
    unknown_further = admit(replace(slow, further_bytes=None), Strategy.PRE_COPY)  # then no place is written twice
    assert times(unknown_further)["land"] == pytest.approx((3e6 + 15e6 * (1 - 3 / 20)) / 10e6)


def test_of_what_blocks_write_each_elsewhere_half_is_expected_and_all_of_it_has_to_fit() -> None:
    """A round of 2 s, and half a second until a boundary: five blocks more of 1 MB each, half of which come to lack."""
    slow = replace(FAST, path_rate=10e6, new_bytes=3_000_000, further_bytes=1_000_000, row_rate=1e15, horizon_s=2.0)
    expected, worst = ((3e6 + (differs - 5e6) * (1 - 3e6 / differs)) / 10e6 for differs in (14.5e6, 17e6))
    found = admit(slow, Strategy.PRE_COPY)
    assert times(found)["land"] == pytest.approx(expected)
    assert found.spread_s == pytest.approx(worst - expected, rel=0.01)
    needed = found.expected_s + found.spread_s
    assert admit(replace(slow, horizon_s=needed + 1e-6), Strategy.PRE_COPY).admitted
    late = admit(replace(slow, horizon_s=needed - 1e-6), Strategy.PRE_COPY)
    assert late.reason == "too_slow"
    assert "more by when in a block its rounds begin" in late.detail


def test_over_a_path_that_carries_less_than_a_block_makes_all_that_changes_is_left() -> None:
    slow = replace(FAST, path_rate=10e6, horizon_s=2.0)
    assert times(admit(slow, Strategy.PRE_COPY))["land"] == pytest.approx(1.2)
    assert times(admit(replace(slow, path_rate=12e6), Strategy.PRE_COPY))["land"] == pytest.approx((6 + 6 / 2) / 12)


def test_rounds_keep_some_of_the_patience_for_the_boundary() -> None:
    slow = replace(FAST, path_rate=10e6, new_bytes=3_000_000, horizon_s=1.0, period_s=0.31)
    needed = 2 * 2.002 + PrecopyConfig().reserve_s
    assert admit(slow, Strategy.PRE_COPY).before_s < needed
    assert admit(replace(slow, patience_s=needed + 0.001), Strategy.PRE_COPY).admitted
    late = admit(replace(slow, patience_s=needed - 0.001), Strategy.PRE_COPY)
    assert late.reason == "too_long"
    assert "it is expected to prepare for 5.00 s" in late.detail


def test_what_is_final_in_time_is_not_left_for_the_boundary_but_for_the_last_leaf() -> None:
    on_time = times(admit(replace(FAST, source_hash_rate=1e12), Strategy.STREAMING))
    assert on_time["land"] == pytest.approx(500_000 / 4e9)
    late = times(admit(replace(FAST, source_hash_rate=1e12, path_rate=1e8), Strategy.STREAMING))
    assert late["land"] == pytest.approx((6e6 - 0.02 * 1e8) / 1e8)


def test_a_followed_component_does_not_travel() -> None:
    assert FAST.final is not None
    followed = replace(FAST.final, num_bytes=2_000_000, followed_bytes=4_000_000)
    slow = replace(FAST, path_rate=5e6, horizon_s=1.0, dirty_bytes=6_000_000)
    assert admit(slow, Strategy.STREAMING).reason == "falls_behind"  # 6 MB in each half second
    assert times(admit(replace(slow, final=followed), Strategy.STREAMING))["land"] == pytest.approx(1.9e6 / 5e6)


def test_a_path_that_is_hardly_fast_enough_is_still_behind_when_a_stream_is_frozen() -> None:
    """8 MB differ, and 2.5 come over until the next boundary: of 5.5 a block of 2 MB writes a quarter again."""
    assert FAST.final is not None
    final = replace(FAST.final, num_bytes=2_000_000, followed_bytes=4_000_000)
    slow = replace(FAST, path_rate=5e6, horizon_s=3.0, dirty_bytes=12_000_000, row_rate=1e12, final=final)
    assert slow.period_s == 0.5
    assert times(admit(slow, Strategy.STREAMING))["land"] == pytest.approx((2e6 + 5.5e6 * 0.75) / 5e6)
    faster = replace(slow, path_rate=2e7)  # nothing is behind, so what is final travels
    assert times(admit(faster, Strategy.STREAMING))["land"] == pytest.approx(1.6e6 / 2e7)


def test_a_component_is_followed_where_the_destination_has_time_and_the_source_a_place_for_a_copy() -> None:
    assert FAST.final is not None
    final = replace(FAST.final, num_bytes=2_000_000, followed_bytes=4_000_000, follow_s=0.1)
    slow = replace(FAST, path_rate=5e6, horizon_s=1.0, final=final, period_s=0.5, utilisation=0.5)
    admitted = admit(slow, Strategy.STREAMING)
    assert [term.name for term in admitted.before] == ["base", "rows", "round", "follow", "settle"]
    for without in ({"utilisation": 0.85}, {"utilisation": None}, {"num_source_slots_free": 0}):
        assert admit(replace(slow, **without), Strategy.STREAMING).reason == "falls_behind"


def test_the_pause_of_a_replay_has_no_term_that_grows_with_the_path() -> None:
    fast, slow = (admit(replace(FAST, path_rate=rate), Strategy.REPLAY) for rate in (1e12, 1e6))
    assert times(fast) == times(slow)
    assert slow.before_s > fast.before_s + 19


def test_a_follower_is_expected_to_be_waited_for_before_the_freeze_until_a_replay_has_measured_it() -> None:
    """20 MB: a pass of the source takes 2 ms, one of the destination 2.5 ms, and the freeze 4 ms."""
    assert times(admit(FAST, Strategy.REPLAY))["halt"] == 0.0
    assert admit(FAST, Strategy.REPLAY).expected_s == pytest.approx(0.004 + 2 * 0.002 + 0.006)
    late = replace(FAST, fixed=replace(FAST.fixed, halt_s=0.007, num_moves=3))
    assert times(admit(late, Strategy.REPLAY))["halt"] == pytest.approx(0.003)
    assert admit(late, Strategy.REPLAY).expected_s == pytest.approx(0.007 + 0.0025 + 0.006)


def test_a_replay_whose_follower_stands_still_already_takes_what_its_source_takes() -> None:
    early = replace(FAST, fixed=replace(FAST.fixed, halt_s=0.0, num_moves=3))
    found = times(admit(early, Strategy.REPLAY))
    assert (found["freeze"], found["halt"], found["verify"]) == pytest.approx((0.004, 0.0, 0.004))
    slow_there = times(admit(replace(early, destination_hash_rate=1e9), Strategy.REPLAY))
    assert slow_there["freeze"] + slow_there["halt"] + slow_there["verify"] == pytest.approx(0.020)


def test_a_replay_catches_up_with_what_was_played_since_its_snapshot() -> None:
    verdict = admit(replace(FAST, path_rate=10e6), Strategy.REPLAY)
    before = {term.name: term.seconds for term in verdict.before}
    lag_s = before["aside"] + before["snapshot"] + before["check"] + before["turn"]
    assert before["turn"] == pytest.approx(0.2 * 0.5)
    # While what has left and what is added to it meanwhile are stepped, one block after another, as many periods go by.
    made_up_s = before["catch up"] - 0.1 - before["turn"]
    num_blocks = (lag_s - 0.5 + made_up_s) / 0.5
    assert num_blocks * 0.1 / (1 - 0.2) == pytest.approx(made_up_s)


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
    assert "no session is held still for longer than 2.00 s; the largest part is land" in slow.detail
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
    assert "the largest part is land, 418 ms" in verdict.detail
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


@every
@settings(max_examples=50)
@given(measured=anything(), factor=st.floats(1.0, 1e3))
def test_a_larger_state_is_never_expected_to_take_less(strategy: Strategy, measured: Measured, factor: float) -> None:
    small = roomy(measured)
    large = replace(small, num_bytes=int(small.num_bytes * factor))
    before, after = admit(small, strategy), admit(large, strategy)
    if before.terms and after.terms:
        assert after.expected_s >= before.expected_s


@every
@settings(max_examples=50)
@given(measured=anything())
def test_the_terms_are_what_is_expected_and_no_less_than_what_cannot_overlap(
    strategy: Strategy, measured: Measured
) -> None:
    verdict = admit(roomy(measured), strategy)
    if not verdict.terms:
        return
    assert all(term.seconds >= 0 for term in (*verdict.terms, *verdict.before))
    assert verdict.expected_s == pytest.approx(sum(term.seconds for term in verdict.terms))
    fixed, size, took = measured.fixed, measured.num_bytes, times(verdict)
    at_source = fixed.freeze_s + 2 * size / measured.rate("source_hash_rate") + fixed.commit_s
    at_destination = size / measured.rate("destination_hash_rate") + fixed.commit_s
    if strategy is Strategy.REPLAY:
        at_destination = 0.0 if fixed.halt_s is None else at_destination + fixed.halt_s
    else:
        at_destination += fixed.install_s + max(fixed.freeze_s, took["land"])
    if strategy is Strategy.BOUNDARY_COPY:
        begun = max(0.0, fixed.freeze_s + fixed.boundary_s)
        at_destination += begun + size / measured.rate("path_rate") - max(fixed.freeze_s, took["land"])
    assert verdict.expected_s >= max(at_source, at_destination) * (1 - 1e-9)


def test_a_landing_that_begins_ahead_of_the_freezes_end_costs_only_what_comes_after_that() -> None:
    ahead = replace(FAST, fixed=replace(FAST.fixed, boundary_s=-0.003))
    found = times(admit(ahead))
    assert (found["boundary"], found["land"]) == pytest.approx((0.0, 0.002))  # 5 ms, of which 3 lie in the freeze
    assert "begun 3.00 ms before the state is resolved" in admit(ahead).terms[2].how
    assert times(admit(replace(ahead, path_rate=1e12)))["land"] == 0.0


def test_what_comes_over_while_a_session_stands_still_is_not_left_but_for_what_never_did() -> None:
    slow = replace(FAST, path_rate=100e6, horizon_s=1.0, block_s=None)
    assert times(admit(slow, Strategy.PRE_COPY))["land"] == pytest.approx(0.06)
    rested = replace(slow, fixed=Fixed(num_moves=1, rest_s=0.03, left_bytes=1_000_000))
    assert times(admit(rested, Strategy.PRE_COPY))["land"] == pytest.approx(0.03)
    always = replace(slow, fixed=Fixed(num_moves=1, rest_s=0.03, is_rested=True, left_bytes=1_000_000))
    assert times(admit(always, Strategy.PRE_COPY))["land"] == pytest.approx(0.01)
    assert times(admit(replace(always, horizon_s=0.05 / REST), Strategy.PRE_COPY))["land"] == pytest.approx(0.01)
    assert times(admit(replace(always, horizon_s=0.04 / REST), Strategy.PRE_COPY))["land"] == pytest.approx(0.02)


def test_what_one_in_ten_moves_takes_longer_has_to_fit_too_and_is_said() -> None:
    spread = replace(FAST, fixed=replace(FAST.fixed, spread_s=0.010))
    expected = admit(FAST).expected_s
    assert admit(spread).expected_s == expected
    assert admit(replace(spread, horizon_s=expected + 0.010)).slack_s == pytest.approx(0.0)
    late = admit(replace(spread, horizon_s=expected + 0.009))
    assert late.reason == "too_slow"
    assert "one in ten 10.0 ms more" in late.detail


def test_what_is_told_of_rows_grows_with_the_state_and_shrinks_with_none() -> None:
    known = replace(FAST, fixed=Fixed(boundary_s=0.002, reconcile_s=0.003, num_bytes=FAST.num_bytes))
    same, twice, half = (
        times(admit(replace(known, num_bytes=size), Strategy.PRE_COPY)) for size in (20_000_000, 40_000_000, 12_000_000)
    )
    assert (same["boundary"], same["reconcile"]) == pytest.approx((0.002, 0.003))
    assert (twice["boundary"], twice["reconcile"]) == pytest.approx((0.004, 0.006))
    assert (half["boundary"], half["reconcile"]) == pytest.approx((0.002, 0.003))


def test_before_any_move_a_share_of_the_time_until_somebody_waits_is_counted_on_for_what_differs_to_come() -> None:
    slow = replace(FAST, path_rate=100e6, horizon_s=0.05 / REST, block_s=None)
    first = admit(replace(slow, fixed=Fixed()), Strategy.PRE_COPY)
    assert times(first)["land"] == pytest.approx(0.06 - 0.05)
    assert first.before[-1].name == "rest"
    assert first.at_risk_s == pytest.approx(0.05)
    wide = admit(replace(slow, path_rate=1e9, fixed=Fixed()), Strategy.PRE_COPY)
    assert [times(wide)[name] for name in ("reconcile", "moves", "land")] == [0.0, 0.0, 0.0]
    assert wide.at_risk_s == pytest.approx(0.006)
    assert admit(FAST, Strategy.REPLAY).at_risk_s == admit(FAST).at_risk_s == 0.0


def test_a_block_that_is_computed_alone_says_how_long_a_session_stands_still_where_the_horizon_says_less() -> None:
    """While moves go on, blocks beside them take longer, and the horizon is shorter for that."""
    slow = replace(FAST, path_rate=100e6, horizon_s=0.02, period_s=0.08, block_s=0.01, fixed=Fixed())
    assert rest_s(slow) == pytest.approx(STANDS * 0.07)
    assert rest_s(replace(slow, block_s=0.5)) == pytest.approx(REST * 0.02)
    assert rest_s(replace(slow, still_s=0.001)) == 0.001


def test_what_was_left_over_this_path_is_what_will_be_however_fast_it_is_said_to_be() -> None:
    known = replace(
        FAST, path_rate=1e6, horizon_s=100.0, fixed=Fixed(num_moves=3, left_bytes=2_000, is_left_known=True)
    )
    assert times(admit(known, Strategy.PRE_COPY))["land"] == pytest.approx(0.002)
    assert times(admit(replace(known, num_bytes=1_000), Strategy.PRE_COPY))["land"] == pytest.approx(0.001)


@settings(max_examples=200)
@given(anything())
def test_a_pause_behind_a_rest_is_over_in_time_though_the_session_stands_still_until_the_next_list(
    measured: Measured,
) -> None:
    """The horizon is two periods less two blocks from the end of a block on, and the next list comes half-way."""
    for strategy in (Strategy.PRE_COPY, Strategy.STREAMING):
        verdict = admit(roomy(measured), strategy)
        if verdict.admitted and verdict.at_risk_s > 0:
            assert 2 * (verdict.expected_s + verdict.spread_s) <= measured.rate("horizon_s")


def test_a_pause_that_would_fit_if_its_freeze_had_not_waited_for_the_next_list_is_refused() -> None:
    """One H200, over 11.8 Gb/s: 399 ms behind a rest of 267, where the horizon was 553: a block came 91 ms late."""
    slow = replace(FAST, horizon_s=0.553, path_rate=1.48e9, num_bytes=2_736_000_000, dirty_bytes=600_000_000)
    slow = replace(slow, source_hash_rate=9e11, destination_hash_rate=9e11, row_rate=4e11, copy_rate=4e11)
    slow = replace(slow, new_bytes=590_000_000, patience_s=60.0, fixed=Fixed(num_moves=1, rest_s=0.08))
    verdict = admit(slow, Strategy.PRE_COPY)
    assert verdict.at_risk_s > 0
    assert 0.3 < verdict.expected_s < 0.5
    assert verdict.reason == "too_slow"
    assert verdict.horizon_s == pytest.approx(0.2765)
