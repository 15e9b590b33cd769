"""What the last moves have measured for the next one."""

from dataclasses import replace
from typing import Any

import pytest

from worldmove.fleet.lessons import AGE_S, RATE_FROM_BYTES, Route, Rows, fixed, hash_rates, path_rate, rows_learned
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.move.measured import Fixed
from worldmove.move.strategy import Strategy

RATES = {"shm_bytes_per_s": 1e9, "hash_bytes_per_s": 1e9}
HASHES = (20e9, 10e9)
TCP = Route(source="a", destination="b", transport="tcp")


def phase(side: str, name: str, start_s: float, end_s: float) -> PhaseTime:
    return PhaseTime(side=side, name=name, start_s=start_s, end_s=end_s)


def moved(rate: float = 1e9, transport: str = "tcp", num_bytes: int = 100_000_000, **changes: Any) -> MoveReport:
    """A move that froze for 3 ms, said so for 1 ms, landed at a rate, installed for 5 ms, and ended 8 ms after."""
    landed = 0.004 + num_bytes / rate
    proven = landed + 0.005 + num_bytes / HASHES[1]
    told = MoveReport(
        session="s",
        attempt="00000001-x",
        source="a",
        destination="b",
        outcome=Outcome.COMMITTED,
        reason="done",
        detail="",
        epoch=2,
        tries=1,
        transport=transport,
        started_at=5.0,
        took_s=1.0,
        num_bytes=num_bytes,
        pulled_bytes=num_bytes,
        pause_s=proven + 0.008,
        phases=(
            phase("source", "freeze", 0.0, 0.003),
            phase("destination", "land", 0.004, landed),
            phase("source", "second_digest", landed, landed + num_bytes / HASHES[0]),
            phase("destination", "verify", landed + 0.005, proven),
            phase("destination", "promote", proven + 0.007, proven + 0.008),
        ),
    )
    return replace(told, **changes)


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
}


@pytest.mark.parametrize("told", OTHERS.values(), ids=OTHERS)
def test_a_move_that_says_nothing_of_this_path_does_not_count(told: MoveReport) -> None:
    assert rate_over("tcp", told) is None
    assert rate_over("tcp", told, moved(5e8)) == pytest.approx(5e8)


def test_hash_rates_are_those_of_the_moves_and_else_those_of_the_warm_up() -> None:
    assert hash_rates(TCP, (), 10.0, source=1.0, destination=None) == (1.0, None)
    assert hash_rates(TCP, [moved()], 10.0, source=1.0, destination=2.0) == pytest.approx(HASHES)


def test_what_does_not_grow_is_cut_out_of_the_last_pauses() -> None:
    found = fixed(TCP, Strategy.BOUNDARY_COPY, [moved(), moved(2e9)], 10.0, hashes=HASHES)
    assert found.num_moves == 2
    assert (found.freeze_s, found.install_s, found.commit_s) == pytest.approx((0.004, 0.005, 0.008))


def test_the_parts_that_were_learned_add_up_to_the_pause_they_were_learned_from() -> None:
    told = moved(pause_s=0.5)
    found = fixed(TCP, Strategy.BOUNDARY_COPY, [told], 10.0, hashes=HASHES)
    grown_s = 0.1 + max(100e6 / HASHES[0], found.install_s + 100e6 / HASHES[1])
    assert found.freeze_s + grown_s + found.commit_s == pytest.approx(0.5)


def test_before_the_first_move_there_are_values_to_start_with_and_they_say_so() -> None:
    assert fixed(TCP, Strategy.BOUNDARY_COPY, (), 10.0, hashes=HASHES) == Fixed()
    assert Fixed().num_moves == 0


def test_another_pairs_pauses_count_only_while_this_one_has_none_and_another_strategys_only_while_this_one_has() -> (
    None
):
    other_pair = moved(source="b", destination="a", pause_s=0.9)
    rounds = moved(strategy="pre-copy", pause_s=0.8)
    assert learned(other_pair, rounds).commit_s > 0.7
    assert learned(other_pair).of == "median of 1 move"
    assert learned(other_pair, rounds, moved()).commit_s == pytest.approx(0.008)
    assert learned(rounds).of == "median of 1 move by other strategies"


def test_a_replay_which_installs_nothing_in_its_pause_teaches_the_others_nothing() -> None:
    assert learned(replayed(0.0)) == Fixed()
    assert fixed(TCP, Strategy.REPLAY, [moved()], 10.0, hashes=HASHES).commit_s == pytest.approx(0.008)


def test_before_any_move_what_the_caller_knows_counts() -> None:
    start = Fixed(freeze_s=0.5, of="the warm-ups")
    assert fixed(TCP, Strategy.REPLAY, (), 10.0, hashes=HASHES, start=start) is start


def learned(*told: MoveReport) -> Fixed:
    return fixed(TCP, Strategy.BOUNDARY_COPY, told, 10.0, hashes=HASHES)


def replayed(halted_s: float) -> MoveReport:
    """A replay of 100 MB that froze for 3 ms, and ended 8 ms after both ends had proven what they stand at."""
    proven = max(0.003 + 2 * 0.005, max(0.0, halted_s) + 0.010)
    phases = (
        phase("destination", "halt", -0.4, halted_s),
        phase("destination", "verify", halted_s, halted_s + 0.010),
        phase("source", "freeze", 0.0, 0.003),
    )
    return moved(strategy="replay", phases=phases, pause_s=proven + 0.008)


@pytest.mark.parametrize("halted_s", [-0.2, 0.002, 0.011])
def test_of_a_replay_it_is_learned_when_its_follower_stands_still_and_not_how_long_it_was_on_its_way(
    halted_s: float,
) -> None:
    found = fixed(TCP, Strategy.REPLAY, [replayed(halted_s)], 10.0, hashes=HASHES)
    assert (found.freeze_s, found.install_s, found.commit_s) == pytest.approx((0.003, 0.0, 0.008))
    assert found.meet_s == pytest.approx(max(0.0, halted_s))


def test_a_report_without_its_phases_teaches_nothing() -> None:
    assert fixed(TCP, Strategy.BOUNDARY_COPY, [moved(phases=())], 10.0, hashes=HASHES).num_moves == 0
    assert fixed(TCP, Strategy.BOUNDARY_COPY, [moved(pause_s=None)], 10.0, hashes=HASHES).num_moves == 0


ROWED: dict[str, Any] = {"strategy": "pre-copy", "pulled_bytes": 30_000_000, "moved_bytes": 20_000_000}


def with_rows(told: MoveReport) -> MoveReport:
    """The same move, with 10 ms of digesting rows and 2 ms of moving some before its first byte."""
    later = [replace(p, start_s=p.start_s + 0.012, end_s=p.end_s + 0.012) for p in told.phases if p.name != "freeze"]
    own = (phase("source", "rows", 0.003, 0.013), phase("destination", "moves", 0.014, 0.016))
    pause_s = None if told.pause_s is None else told.pause_s + 0.012
    return replace(told, phases=(told.phases[0], *own, *later), pause_s=pause_s)


def test_of_a_pre_copy_only_what_it_pulled_at_the_boundary_counts_for_the_path() -> None:
    assert rate_over("tcp", moved(1e9, **ROWED)) == pytest.approx(0.3e9)
    assert rate_over("tcp", moved(1e9, **{**ROWED, "pulled_bytes": 1000})) is None


def test_rows_that_have_their_own_terms_are_no_part_of_what_does_not_grow() -> None:
    told = with_rows(moved(**ROWED))
    found = fixed(TCP, Strategy.PRE_COPY, [told], 10.0, hashes=HASHES)
    assert (found.freeze_s, found.install_s, found.commit_s) == pytest.approx((0.004, 0.005, 0.008))


def test_what_a_block_changes_is_learned_from_what_pre_copies_moved_and_pulled() -> None:
    known = Rows(row_rate=1.0, dirty_bytes=2, new_bytes=3)
    assert rows_learned(TCP, [moved()], 10.0, known) == known
    found = rows_learned(TCP, [with_rows(moved(**ROWED))], 10.0, known)
    assert (found.new_bytes, found.dirty_bytes) == (30_000_000, 50_000_000)
    assert (found.row_rate, found.move_rate) == pytest.approx((100e6 / 0.010, 20e6 / 0.002))


def test_what_a_streaming_move_pulled_says_how_fast_and_not_how_much() -> None:
    known = Rows(row_rate=1.0, dirty_bytes=2, new_bytes=3)
    found = rows_learned(TCP, [with_rows(moved(**{**ROWED, "strategy": "streaming"}))], 10.0, known)
    assert (found.dirty_bytes, found.new_bytes) == (2, 3)
    assert (found.row_rate, found.move_rate) == pytest.approx((100e6 / 0.010, 20e6 / 0.002))
