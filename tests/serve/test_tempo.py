"""Due times, closings and rest, by a clock that is an argument."""

from dataclasses import replace

import pytest

from worldmove.serve.tempo import (
    NO_KEY,
    NOBODY_WATCHES,
    Close,
    Decision,
    Rest,
    Situation,
    Tempo,
    TempoConfig,
    Wait,
    horizon_s,
)

CONFIG = TempoConfig(period_s=0.25, lead_s=0.25, rest_after_s=4.0)
START = Situation(now=100.0, block=0, shown=0, active=True, kept=False, watched=True)


def play(tempo: Tempo, situation: Situation, seconds: float) -> tuple[list[tuple[int, float]], Decision]:
    """Let every block be shown at once; return what was closed when, and the last decision."""
    closed, end = [], situation.now + seconds
    while True:
        decision = tempo.decide(situation)
        if isinstance(decision, Close):
            closed.append((situation.block, situation.now))
            situation = replace(situation, block=situation.block + 1, shown=situation.block + 1)
        elif isinstance(decision, Wait) and decision.until is not None and decision.until <= end:
            situation = replace(situation, now=decision.until)
        else:
            return closed, decision


def test_each_list_is_closed_one_lead_before_its_block_is_due() -> None:
    tempo = Tempo(CONFIG)
    closed, _ = play(tempo, START, 2.0)
    assert [block for block, _ in closed] == list(range(9))
    assert [at for _, at in closed] == pytest.approx([100.0 + 0.25 * block for block in range(9)])
    assert tempo.due(8) == pytest.approx(102.25)
    assert tempo.due(9) is None
    assert tempo.will_be_due(9) == pytest.approx(102.5)


def test_a_world_that_nobody_watches_closes_no_block() -> None:
    assert Tempo(CONFIG).decide(replace(START, watched=False)) == Rest(NOBODY_WATCHES)


def test_the_first_look_at_a_world_plays_it_and_then_it_rests() -> None:
    closed, decision = play(Tempo(CONFIG), replace(START, active=False), 60.0)
    assert len(closed) == 16
    assert decision == Rest(NO_KEY)


def test_a_second_look_at_a_resting_world_does_not_wake_it() -> None:
    tempo = Tempo(CONFIG)
    play(tempo, replace(START, active=False), 60.0)
    later = replace(START, now=500.0, active=False, block=16, shown=16)
    assert tempo.decide(replace(later, watched=False)) == Rest(NOBODY_WATCHES)
    assert tempo.decide(later) == Rest(NO_KEY)


def test_being_kept_going_needs_somebody_who_watches() -> None:
    tempo = Tempo(CONFIG)
    kept = replace(START, active=False, kept=True)
    closed, _ = play(tempo, kept, 60.0)
    assert len(closed) == 241
    assert isinstance(tempo.decide(replace(kept, now=200.0, block=241, shown=241, watched=False)), Rest)


def test_waking_closes_the_list_at_once_and_begins_a_new_anchor() -> None:
    tempo = Tempo(CONFIG)
    play(tempo, replace(START, active=False), 60.0)
    woken = replace(START, now=777.1, block=16, shown=16)
    assert tempo.decide(woken) == Close()
    assert tempo.due(16) == pytest.approx(777.35)


def test_two_blocks_on_their_way_hold_the_third_back() -> None:
    tempo = Tempo(CONFIG)
    assert tempo.decide(START) == Close()
    assert tempo.decide(replace(START, now=100.25, block=1)) == Close()
    assert tempo.decide(replace(START, now=100.5, block=2)) == Wait(None)
    assert tempo.decide(replace(START, now=100.6, block=2, shown=1)) == Close()
    assert tempo.due(2) == pytest.approx(100.75)


def test_a_closing_after_its_own_due_time_begins_a_new_anchor_and_leaves_older_due_times_alone() -> None:
    tempo = Tempo(CONFIG)
    tempo.decide(START)
    tempo.decide(replace(START, now=100.25, block=1))
    assert tempo.decide(replace(START, now=101.0, block=2, shown=1)) == Close()
    assert tempo.due(1) == pytest.approx(100.5)
    assert tempo.due(2) == pytest.approx(101.25)


def test_a_world_does_not_rest_before_the_blocks_on_their_way_are_shown() -> None:
    tempo = Tempo(CONFIG)
    tempo.decide(START)
    gone = replace(START, now=100.1, block=1, watched=False)
    assert tempo.decide(gone) == Wait(None)
    assert tempo.decide(replace(gone, shown=1)) == Rest(NOBODY_WATCHES)


def test_a_world_does_not_rest_while_blocks_are_owed_to_a_retired_copy() -> None:
    tempo = Tempo(CONFIG)
    unwatched = replace(START, active=False, watched=False)
    assert tempo.decide(unwatched) == Rest(NOBODY_WATCHES)
    assert tempo.decide(replace(unwatched, owed=True)) == Close()
    assert tempo.decide(replace(unwatched, block=1, shown=1)) == Rest(NOBODY_WATCHES)


def test_the_horizon_leaves_the_slowest_tenth_of_the_block_times_out() -> None:
    assert horizon_s(0.25, ()) is None
    assert horizon_s(0.25, (0.1,)) == pytest.approx(0.3)
    assert horizon_s(0.25, (0.1,) * 9 + (0.2,)) == pytest.approx(0.3)
    assert horizon_s(0.25, (0.1,) * 8 + (0.2, 0.2)) == pytest.approx(0.1)


def test_a_world_too_slow_for_its_period_has_no_block_that_a_move_could_make_late() -> None:
    assert horizon_s(0.25, (0.25,)) == float("inf")
    assert horizon_s(0.25, (0.3,)) == float("inf")
