from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from worldmove.move.precopy import Next, PrecopyConfig, Seen, Verdict, decide

CONFIG = PrecopyConfig()
MB = 1_000_000
FAST = Seen(
    num_rounds=2,
    state_bytes=1670 * MB,
    changing_bytes=1298 * MB,
    new_bytes_per_s=1352e6,
    path_bytes_per_s=12.5e9,
    round_s=0.134,
    time_left_s=50.0,
)
"""A path of 100 Gb/s, and an engine that writes 649 MB anew in 0.48 s."""


def test_the_first_round_needs_nothing_but_time() -> None:
    fresh = Seen(num_rounds=0, state_bytes=1670 * MB, time_left_s=2.0)
    assert decide(fresh, CONFIG).next is Next.ROUND
    assert decide(replace(fresh, time_left_s=0.9), CONFIG).next is Next.GIVE_UP
    assert decide(replace(fresh, path_bytes_per_s=1e9), CONFIG).next is Next.GIVE_UP
    assert decide(replace(fresh, path_bytes_per_s=2e9), CONFIG).next is Next.ROUND


def test_one_round_does_not_show_what_changes() -> None:
    once = replace(FAST, num_rounds=1, changing_bytes=None, new_bytes_per_s=None)
    assert decide(once, CONFIG).next is Next.ROUND
    assert decide(replace(once, time_left_s=1.1), CONFIG).next is Next.BOUNDARY
    late = decide(replace(once, time_left_s=1.1, affordable_bytes=MB), CONFIG)
    assert late.next is Next.GIVE_UP
    assert late.why.startswith("there is no time for another round: all of it")


def test_a_path_that_is_faster_than_the_engine_writes_is_worth_another_round() -> None:
    verdict = decide(FAST, CONFIG)
    assert verdict.next is Next.ROUND
    assert verdict.left_bytes == 181_168_000
    assert verdict.why == "another round saves 40.8 MB"


def test_a_path_that_is_as_slow_as_the_engine_writes_gains_nothing() -> None:
    slow = replace(FAST, path_bytes_per_s=1.25e9, round_s=1.3)
    assert decide(slow, CONFIG) == Verdict(
        next=Next.BOUNDARY, why="another round would leave as much", left_bytes=1298 * MB
    )
    verdict = decide(replace(slow, affordable_bytes=100 * MB), CONFIG)
    assert verdict.next is Next.GIVE_UP
    assert verdict.why == ("another round would leave as much: 1.30 GB would be left, and 100 MB fit into the pause")


def test_what_fits_into_the_pause_is_not_pulled_before() -> None:
    assert decide(replace(FAST, affordable_bytes=181_168_000), CONFIG).next is Next.BOUNDARY
    assert decide(replace(FAST, affordable_bytes=181_167_999), CONFIG).next is Next.ROUND


def test_rounds_end() -> None:
    assert decide(replace(FAST, num_rounds=7), CONFIG).next is Next.ROUND
    assert decide(replace(FAST, num_rounds=8), CONFIG).next is Next.BOUNDARY
    assert decide(replace(FAST, num_rounds=8, affordable_bytes=MB), CONFIG).next is Next.GIVE_UP


def test_a_session_that_rests_is_at_its_boundary() -> None:
    still = replace(FAST, changing_bytes=0, new_bytes_per_s=0.0)
    assert decide(still, CONFIG) == Verdict(next=Next.BOUNDARY, why="another round would leave as much", left_bytes=0)
    assert decide(replace(still, affordable_bytes=0), CONFIG).next is Next.BOUNDARY


rates = st.none() | st.floats(0, 1e12)


def test_over_a_path_that_all_but_stands_everything_is_left() -> None:
    stands = replace(FAST, path_bytes_per_s=1e-300)
    assert decide(stands, CONFIG).why == "there is no time for another round"
    assert decide(replace(stands, affordable_bytes=1), CONFIG).next is Next.GIVE_UP


@given(
    st.builds(
        Seen,
        num_rounds=st.integers(0, 12),
        state_bytes=st.integers(0, 1 << 40),
        changing_bytes=st.none() | st.integers(0, 1 << 40),
        new_bytes_per_s=rates,
        path_bytes_per_s=rates,
        round_s=st.floats(0, 1e4),
        time_left_s=st.floats(-10, 1e4),
        affordable_bytes=st.none() | st.integers(0, 1 << 40),
    )
)
def test_whatever_was_measured_rounds_come_to_an_end_and_no_time_is_overdrawn(seen: Seen) -> None:
    verdict = decide(seen, CONFIG)
    assert verdict.why
    if verdict.next is Next.ROUND:
        assert seen.time_left_s >= CONFIG.reserve_s
        assert seen.num_rounds < CONFIG.max_rounds or verdict.left_bytes is None
        assert decide(replace(seen, time_left_s=0.5), CONFIG).next is not Next.ROUND
    if verdict.next is Next.GIVE_UP and seen.num_rounds:
        assert seen.affordable_bytes is not None
    if verdict.next is Next.BOUNDARY and verdict.left_bytes is not None and seen.affordable_bytes is not None:
        assert verdict.left_bytes <= seen.affordable_bytes
