"""Which strategy is chosen: the least pause of those that are admitted, and not for a trifle."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.move.measuring import FAST, anything
from worldmove.move.choice import NEAR_S, NEAR_SHARE, choose
from worldmove.move.measured import Fixed, Measured
from worldmove.move.reckoning.reckoners import RECKONERS
from worldmove.move.strategy import WIRED, Strategy

ALL = tuple(Strategy)
LARGE = replace(
    FAST, num_bytes=1_670_000_000, dirty_bytes=1_298_000_000, new_bytes=649_000_000, source_hash_rate=1e12,
    destination_hash_rate=1e12, row_rate=1e12, copy_rate=1e12, final=None,
)  # fmt: skip


def alike(measured: Measured) -> dict[Strategy, Measured]:
    return dict.fromkeys(ALL, measured)


def test_every_strategy_has_its_reckoning() -> None:
    assert tuple(RECKONERS) == ALL


def test_on_a_near_tie_it_is_a_boundary_copy() -> None:
    assert choose(alike(replace(FAST, path_rate=1e12)), offered=ALL).strategy is Strategy.BOUNDARY_COPY


def test_a_slower_path_makes_it_a_difference_and_a_still_slower_one_a_replay() -> None:
    wide, narrow, thin = (replace(LARGE, path_rate=rate, horizon_s=10.0) for rate in (12.5e9, 3.1e9, 1.25e8))
    assert choose(alike(wide), offered=ALL[:2]).strategy is Strategy.PRE_COPY
    assert choose(alike(narrow), offered=ALL).strategy is Strategy.REPLAY
    assert choose(alike(replace(thin, horizon_s=0.3)), offered=ALL).strategy is Strategy.REPLAY


def test_only_what_is_offered_is_weighed() -> None:
    assert [verdict.strategy for verdict in choose(alike(FAST)).verdicts] == list(WIRED)
    assert choose(alike(replace(LARGE, path_rate=1e9)), offered=ALL[:1]).verdict.reason == "too_slow"


def test_a_wanted_strategy_is_judged_and_no_other_taken_for_it() -> None:
    slow = replace(LARGE, path_rate=1e9)
    assert choose(alike(slow), Strategy.BOUNDARY_COPY, ALL).verdict.reason == "too_slow"
    assert choose(alike(slow), Strategy.REPLAY, ALL).verdict.admitted


def test_where_none_is_admitted_it_is_the_one_that_lacks_least() -> None:
    found = choose(alike(replace(LARGE, path_rate=1e9, horizon_s=0.002)), offered=ALL)
    assert not found.verdict.admitted
    assert found.strategy is Strategy.REPLAY


def test_where_nothing_is_known_it_is_the_first_that_says_so() -> None:
    found = choose(alike(replace(FAST, path_rate=None)), offered=ALL)
    assert (found.strategy, found.verdict.reason) == (Strategy.BOUNDARY_COPY, "not_measured")
    assert found.of(Strategy.STREAMING).reason == "not_measured"


@settings(max_examples=100)
@given(measured=anything())
def test_an_admitted_strategy_is_taken_if_there_is_one_and_its_pause_is_nearly_the_least(measured: Measured) -> None:
    found = choose(alike(measured), offered=ALL)
    admitted = [verdict for verdict in found.verdicts if verdict.admitted]
    assert found.verdict.admitted == bool(admitted)
    if admitted:
        least_s = min(verdict.expected_s for verdict in admitted)
        near_s = max(NEAR_S, NEAR_SHARE * least_s)
        assert found.verdict.expected_s <= least_s + near_s
        earlier = [verdict for verdict in admitted if ALL.index(verdict.strategy) < ALL.index(found.strategy)]
        assert all(verdict.expected_s > least_s or verdict.at_risk_s > near_s for verdict in earlier)


def test_the_order_of_the_verdicts_is_that_of_the_strategies() -> None:
    assert [verdict.strategy for verdict in choose(alike(FAST), offered=tuple(reversed(ALL))).verdicts] == list(ALL)


@pytest.mark.parametrize("strategy", ALL)
def test_each_verdict_can_be_asked_for(strategy: Strategy) -> None:
    assert choose(alike(FAST), offered=ALL).of(strategy).strategy is strategy


def test_what_has_much_to_bring_over_at_rest_is_not_taken_for_one_that_brings_nothing() -> None:
    """Cut short, it would pause for as long as the rest of that takes."""
    fixed = Fixed(rest_s=0.2, reconcile_s=0.0, num_moves=8)
    rested = replace(LARGE, path_rate=4e9, horizon_s=0.5, fixed=fixed)
    streaming = {strategy: replace(rested, new_bytes=0) for strategy in ALL} | {Strategy.PRE_COPY: rested}
    found = choose({**streaming, Strategy.BOUNDARY_COPY: replace(rested, path_rate=None)}, offered=ALL)
    pre_copy, replay = found.of(Strategy.PRE_COPY), found.of(Strategy.REPLAY)
    assert pre_copy.expected_s < replay.expected_s + NEAR_S < pre_copy.expected_s + pre_copy.at_risk_s
    assert found.strategy is Strategy.REPLAY
    alone = choose(alike(replace(rested, num_source_slots_free=0)), offered=(Strategy.PRE_COPY, Strategy.REPLAY))
    assert alone.strategy is Strategy.PRE_COPY
