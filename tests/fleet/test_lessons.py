"""What the last moves have measured for the next one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.fleet.past import HASHES, TCP, moved, phase, with_rows
from tests.move.measuring import FAST
from worldmove.fleet.lessons import learned, path_rate
from worldmove.fleet.past import AGE_S, RATE_FROM_BYTES
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy

RATES = {"shm_bytes_per_s": 1e9, "hash_bytes_per_s": 1e9}


def rate_over(transport: str, *told: MoveReport, now: float = 10.0) -> float | None:
    return path_rate(replace(TCP, transport=transport), told, RATES, now)


def test_a_path_carries_what_its_destination_measured_of_it_and_another_path_says_nothing() -> None:
    assert rate_over("shm") == 1e9
    assert rate_over("tcp") is None
    assert rate_over("corrupting-shm") == 1e9


def test_a_path_with_a_limit_is_as_fast_as_the_one_inside_and_no_faster_than_the_limit() -> None:
    assert rate_over("throttled-1gbit-shm") == 1.25e8
    assert rate_over("throttled-100gbit-shm") == 1e9
    assert rate_over("throttled-1gbit-tcp") is None
    assert rate_over("throttled-1gbit-shm", moved(1.1e8, "throttled-1gbit-shm")) == pytest.approx(1.1e8)


def test_what_the_last_moves_measured_counts_before_what_the_destination_did() -> None:
    slow = [moved(rate, "shm") for rate in (3e8, 1e8, 2e8)]
    assert rate_over("shm", *slow) == pytest.approx(2e8)


OTHERS = {
    "another path": moved(1e8, "shm"),
    "another pair": moved(1e8, destination="c"),
    "the other way": moved(1e8, source="b", destination="a"),
    "too small": moved(1e8, num_bytes=RATE_FROM_BYTES - 1),
    "aborted": moved(1e8, outcome=Outcome.ABORTED),
    "too long ago": moved(1e8, started_at=9.0 - AGE_S),
    "by a clock that was set back since": moved(1e8, started_at=11.0 + AGE_S),
}


@pytest.mark.parametrize("told", OTHERS.values(), ids=OTHERS)
def test_a_move_that_says_nothing_of_this_path_does_not_count(told: MoveReport) -> None:
    assert rate_over("tcp", told) is None
    assert rate_over("tcp", told, moved(5e8)) == pytest.approx(5e8)


def of(strategy: Strategy, *told: MoveReport, known: Measured = FAST) -> Measured:
    return learned(known, strategy, TCP, told, 10.0)


def hashes(found: Measured) -> tuple[float | None, float | None]:
    return found.source_hash_rate, found.destination_hash_rate


def test_hash_rates_are_those_of_the_moves_and_else_those_of_the_warm_up() -> None:
    assert hashes(of(Strategy.BOUNDARY_COPY)) == (10e9, 8e9)
    assert hashes(of(Strategy.BOUNDARY_COPY, moved())) == pytest.approx(HASHES)
    assert of(Strategy.BOUNDARY_COPY, moved(), known=replace(FAST, source_hash_rate=None)).source_hash_rate is not None


def test_each_strategy_has_its_own_hash_rates_once_it_has_moved() -> None:
    slow = moved(strategy="pre-copy")
    slow = replace(slow, phases=(*slow.phases[:-2], phase("destination", "verify", 0.109, 0.209)))
    assert of(Strategy.BOUNDARY_COPY, moved(), slow, slow).destination_hash_rate == pytest.approx(HASHES[1])
    assert of(Strategy.PRE_COPY, moved(), slow).destination_hash_rate == pytest.approx(1e9)
    assert of(Strategy.STREAMING, moved(), slow).destination_hash_rate == pytest.approx(1e9)


def test_a_followers_pass_which_begins_before_its_source_has_frozen_says_nothing_of_other_strategies() -> None:
    followed = moved(strategy="replay")
    assert hashes(of(Strategy.BOUNDARY_COPY, followed)) == pytest.approx((HASHES[0], 8e9))
    assert hashes(of(Strategy.REPLAY, followed)) == pytest.approx(HASHES)


ROWED: dict[str, Any] = {"strategy": "pre-copy", "pulled_bytes": 30_000_000, "moved_bytes": 20_000_000}


def test_of_a_pre_copy_only_what_it_pulled_at_the_boundary_counts_for_the_path() -> None:
    assert rate_over("tcp", moved(1e9, **ROWED)) == pytest.approx(0.3e9)
    assert rate_over("tcp", moved(1e9, **{**ROWED, "pulled_bytes": 1000})) is None


def test_what_a_pre_copy_has_left_is_too_little_to_say_what_the_path_carries_where_another_move_carried_all() -> None:
    little = moved(1e9, **{**ROWED, "pulled_bytes": 2_000_000})
    assert rate_over("tcp", moved(1e9), little, little, little) == pytest.approx(1e9)


def test_what_a_block_changes_is_learned_from_what_pre_copies_moved_and_pulled() -> None:
    known = of(Strategy.PRE_COPY, moved())
    assert (known.dirty_bytes, known.new_bytes, known.row_rate) == (FAST.dirty_bytes, FAST.new_bytes, FAST.row_rate)
    found = of(Strategy.PRE_COPY, with_rows(moved(**ROWED)))
    assert (found.new_bytes, found.dirty_bytes) == (30_000_000, 50_000_000)
    assert (found.row_rate, found.move_rate) == pytest.approx((100e6 / 0.010, 20e6 / 0.002))


def test_what_was_pulled_after_a_session_had_stood_still_says_nothing_of_what_a_block_makes() -> None:
    told = with_rows(moved(**ROWED))
    rested = replace(told, phases=(phase("destination", "rest", -0.03, -0.01), *told.phases))
    assert of(Strategy.PRE_COPY, rested).new_bytes == FAST.new_bytes


def test_what_a_streaming_move_pulled_says_how_fast_and_not_how_much() -> None:
    found = of(Strategy.STREAMING, with_rows(moved(**{**ROWED, "strategy": "streaming"})))
    assert (found.dirty_bytes, found.new_bytes) == (FAST.dirty_bytes, FAST.new_bytes)
    assert (found.row_rate, found.move_rate) == pytest.approx((100e6 / 0.010, 20e6 / 0.002))


def test_rows_that_were_digested_before_the_pause_cost_it_nothing() -> None:
    told = with_rows(moved(**ROWED))
    early = tuple(replace(p, start_s=-0.05, end_s=-0.04) if p.name == "rows" else p for p in told.phases)
    found = of(Strategy.PRE_COPY, replace(told, phases=early))
    assert found.row_rate is not None
    assert found.num_bytes / found.row_rate < 1e-6


def test_until_a_strategy_has_moved_this_way_its_rates_are_those_of_the_other_way_and_then_of_one_like_it() -> None:
    """And never those between two other workers."""

    def slower(factor: float, **changes: Any) -> MoveReport:
        told = with_rows(moved(**{**ROWED, **changes}))
        return replace(told, num_bytes=int(told.num_bytes / factor))

    back, like = slower(2, source="b", destination="a"), slower(4, strategy="streaming")
    others = slower(8, source="c", destination="b")
    assert of(Strategy.PRE_COPY, others).row_rate == FAST.row_rate
    assert of(Strategy.PRE_COPY, others, like).row_rate == pytest.approx(100e6 / 4 / 0.010)
    assert of(Strategy.PRE_COPY, others, like, back).row_rate == pytest.approx(100e6 / 2 / 0.010)
    assert of(Strategy.PRE_COPY, others, like, back, slower(1)).row_rate == pytest.approx(100e6 / 0.010)
    assert hashes(of(Strategy.PRE_COPY, moved(), like))[0] == pytest.approx(HASHES[0] / 4)
    assert hashes(of(Strategy.REPLAY, others, back))[0] == pytest.approx(HASHES[0] / 2)
