"""The parts of a pause that follow no rate."""

from dataclasses import replace
from typing import Any

import pytest

from tests.fleet.past import HASHES, TCP, moved, phase, replayed, with_rows
from tests.move.measuring import FAST
from worldmove.fleet.lessons import learned
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.stretches import Pace, fixed
from worldmove.move.admission import admit
from worldmove.move.measured import Fixed
from worldmove.move.strategy import Strategy

PACE = Pace(source_hash=HASHES[0], destination_hash=HASHES[1], path=1e9)
ROWED: dict[str, Any] = {"strategy": "pre-copy", "pulled_bytes": 30_000_000, "moved_bytes": 20_000_000}


def of(strategy: Strategy, *told: MoveReport, start: Fixed | None = None, pace: Pace = PACE) -> Fixed:
    return fixed(TCP, strategy, told, 10.0, pace=pace, start=start)


def copied(*told: MoveReport) -> Fixed:
    return of(Strategy.BOUNDARY_COPY, *told)


def test_what_follows_no_rate_is_cut_out_of_the_last_pauses() -> None:
    found = copied(moved(), moved(2e9), moved())
    assert (found.num_moves, found.of, found.num_bytes) == (3, "median of 3 moves", 100_000_000)
    stretches = (found.freeze_s, found.boundary_s, found.land_s, found.install_s, found.verify_s, found.commit_s)
    assert stretches == pytest.approx((0.003, 0.001, 0.0, 0.005, 0.0, 0.008))


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        (Strategy.BOUNDARY_COPY, moved()),
        (Strategy.BOUNDARY_COPY, moved(pause_s=0.5)),
        (Strategy.PRE_COPY, with_rows(moved(**ROWED))),
        (Strategy.STREAMING, with_rows(moved(**{**ROWED, "strategy": "streaming"}))),
        (Strategy.REPLAY, replayed(-0.2)),
        (Strategy.REPLAY, replayed(0.002)),
        (Strategy.REPLAY, replayed(0.011)),
    ],
)
def test_a_move_like_the_last_one_is_expected_to_take_what_that_took(strategy: Strategy, told: MoveReport) -> None:
    """So the terms leave nothing out, and count nothing twice."""
    known = replace(FAST, num_bytes=told.num_bytes, path_rate=1e9, new_bytes=30_000_000, dirty_bytes=50_000_000)
    if told.pulled_bytes < told.num_bytes:
        known = replace(known, path_rate=0.3e9)  # 30 MB in 100 ms
    if known.final is not None:
        known = replace(known, final=replace(known.final, num_bytes=0, last_bytes=0))
    expected = admit(learned(known, strategy, TCP, [told], 10.0), strategy)
    assert told.pause_s is not None
    assert expected.expected_s == pytest.approx(told.pause_s, rel=1e-6)
    assert sum(term.seconds for term in expected.terms) == pytest.approx(told.pause_s, rel=1e-6)


def test_before_the_first_move_there_are_values_to_start_with_and_they_say_so() -> None:
    assert copied() == Fixed()
    assert Fixed().num_moves == 0
    start = Fixed(freeze_s=0.5, of="the warm-ups")
    assert of(Strategy.REPLAY, start=start) == start
    told = Fixed(boundary_s=0.25)  # of a replay only the proof is on its way
    assert (of(Strategy.REPLAY, start=told).verify_s, of(Strategy.PRE_COPY, start=told).verify_s) == (0.25, 0.0)


def test_another_pairs_pauses_count_only_while_this_one_has_few() -> None:
    other_pair = moved(source="b", destination="a")
    other_pair = replace(other_pair, phases=(*other_pair.phases[:-2], phase("destination", "verify", 0.604, 0.614)))
    assert copied(other_pair).install_s == pytest.approx(0.5)
    assert copied(other_pair).of == "median of 1 move"
    assert copied(other_pair, other_pair, moved()).install_s == pytest.approx(0.5)
    assert copied(other_pair, other_pair, other_pair, moved(), moved(), moved()).install_s == pytest.approx(0.005)


def test_of_other_strategies_only_the_freeze_and_the_commit_count_and_only_while_there_is_nothing_else() -> None:
    start = Fixed(install_s=0.9, of="to start with")
    found = of(Strategy.PRE_COPY, moved(), start=start)
    assert (found.freeze_s, found.commit_s, found.install_s) == pytest.approx((0.003, 0.008, 0.9))
    assert found.of == "freeze and commit of 1 move by other strategies; else to start with"
    assert found.num_moves == 0
    assert of(Strategy.BOUNDARY_COPY, replayed(0.0), start=start).install_s == 0.9
    own = of(Strategy.PRE_COPY, moved(pause_s=0.9), with_rows(moved(**ROWED)), start=start)
    assert own.num_moves == 1
    assert own.commit_s == pytest.approx(0.008)


@pytest.mark.parametrize("halted_s", [-0.2, 0.002, 0.011])
def test_of_a_replay_it_is_learned_when_its_follower_stands_still_and_not_how_long_it_was_on_its_way(
    halted_s: float,
) -> None:
    found = of(Strategy.REPLAY, replayed(halted_s))
    assert (found.freeze_s, found.install_s, found.commit_s) == pytest.approx((0.003, 0.0, 0.008))
    assert found.halt_s == pytest.approx(halted_s)


def test_a_report_without_its_phases_teaches_nothing() -> None:
    assert copied(moved(phases=())).num_moves == 0
    assert copied(moved(pause_s=None)).num_moves == 0


def test_rows_that_have_their_own_terms_are_no_part_of_what_follows_no_rate() -> None:
    found = of(Strategy.PRE_COPY, with_rows(moved(**ROWED)))
    assert (found.freeze_s, found.boundary_s, found.reconcile_s) == pytest.approx((0.003, 0.001, 0.002))
    assert (found.install_s, found.commit_s) == pytest.approx((0.005, 0.008))


def test_one_move_in_many_that_was_slow_changes_nothing_but_what_one_in_ten_may_take() -> None:
    slow = moved()
    slow = replace(slow, pause_s=(slow.pause_s or 0.0) + 0.040)
    usual = copied(*[moved()] * 7)
    found = copied(*[moved()] * 6, slow)
    assert found.commit_s == pytest.approx(usual.commit_s)
    assert usual.spread_s == pytest.approx(0.0)
    assert found.spread_s == pytest.approx(0.040)
    assert copied(moved(), slow, moved()).spread_s == 0.0


def test_a_landing_that_begins_before_the_state_is_resolved_is_counted_from_there() -> None:
    told = moved()
    land = phase("destination", "land", 0.001, 0.104)
    early = replace(told, phases=tuple(land if p.name == "land" else p for p in told.phases))
    assert copied(early).boundary_s == pytest.approx(-0.002)


def test_what_is_left_is_that_of_moves_over_a_path_that_was_as_fast() -> None:
    fast, slow = ({**ROWED, "pulled_bytes": left} for left in (10_000_000, 60_000_000))
    told = [with_rows(moved(1e10, **fast)), with_rows(moved(1e9, **slow))]  # 10 MB in 10 ms, 60 MB in 100 ms
    assert of(Strategy.PRE_COPY, *told, pace=replace(PACE, path=1e9)).left_bytes == 10_000_000
    assert of(Strategy.PRE_COPY, *told, pace=replace(PACE, path=0.6e9)).left_bytes == 10_000_000
    assert of(Strategy.PRE_COPY, told[1], pace=replace(PACE, path=5e9)).left_bytes == 60_000_000


def test_how_long_a_session_stands_still_is_said_by_rests_that_were_cut_short_if_there_are_any() -> None:
    def rested(start: float, end: float) -> MoveReport:
        told = with_rows(moved(**ROWED))
        return replace(told, phases=(phase("destination", "rest", start, end), *told.phases))

    enough, cut = rested(-0.03, -0.01), rested(-0.2, 0.04)
    assert (of(Strategy.PRE_COPY, enough, enough, cut).rest_s, of(Strategy.PRE_COPY, enough).rest_s) == (0.2, 0.03)
    assert not of(Strategy.PRE_COPY, enough, enough, cut).is_rested


def test_how_long_a_landing_took_over_a_slower_path_is_no_part_of_one_over_this() -> None:
    assert copied(*[moved(1e8, "throttled-1gbit-tcp")] * 3).land_s == 0.0
    assert copied(*[moved(1e8, "throttled-1gbit-tcp")] * 3, moved(0.5e9)).land_s == pytest.approx(0.1)


def test_before_its_first_move_a_strategy_goes_by_one_whose_pause_goes_the_same_way() -> None:
    found = of(Strategy.STREAMING, with_rows(moved(**ROWED)), moved(), start=Fixed(install_s=0.9))
    assert (found.install_s, found.reconcile_s) == pytest.approx((0.005, 0.002))
    assert found.left_bytes == 0
    assert found.of == "median of 1 move by pre-copy, whose pause goes the same way"
    assert of(Strategy.REPLAY, with_rows(moved(**ROWED)), start=Fixed(install_s=0.9)).install_s == 0.9


def test_a_freeze_to_start_with_is_one_more_of_those_that_others_have_measured() -> None:
    """A worker's very first takes longer than any other."""
    warmed_up = Fixed(freeze_s=0.001, is_measured=True)
    assert of(Strategy.REPLAY, moved(), start=warmed_up).freeze_s == pytest.approx(0.002)
    assert of(Strategy.REPLAY, moved(), start=Fixed(freeze_s=0.001)).freeze_s == pytest.approx(0.003)


def test_what_moves_over_this_very_path_have_left_is_known_and_what_others_have_is_a_least() -> None:
    fast = with_rows(moved(**{**ROWED, "transport": "shm"}))
    slow = with_rows(moved(**{**ROWED, "pulled_bytes": 0}))
    assert (of(Strategy.PRE_COPY, fast).is_left_known, of(Strategy.PRE_COPY, fast).left_bytes) == (False, 30_000_000)
    found = of(Strategy.PRE_COPY, fast, fast, slow)
    assert (found.is_left_known, found.left_bytes) == (True, 0)
    assert not of(Strategy.STREAMING, slow).is_left_known  # by one like it
    assert not copied(moved()).is_left_known
