"""What admission reckons of rounds against the rounds: the destination's own rule over a state that is played on."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.move.measuring import anything, roomy
from tests.move.played_on import KINDS, PERIOD_S, Course, Leaf, changed
from worldmove.move.admission import admit
from worldmove.move.affordable import affordable
from worldmove.move.measured import Fixed, Measured
from worldmove.move.precopy import Next
from worldmove.move.reckoning.settled import settled
from worldmove.move.remedy import least
from worldmove.move.strategy import Strategy

leaves_of = st.lists(st.builds(Leaf, st.sampled_from(KINDS), st.sampled_from([4, 8, 12, 16])), min_size=8, max_size=16)
LARGEST = 16
BEYOND = 1e15
"""So fast that it takes no time."""
PHASES = [(number + 0.5) / 8 for number in range(8)]
WINDOW = [Leaf("rolled", 12)] * 15 + [Leaf("still", 12)] * 4
"""As the large world model's, whose decoder is followed."""


def measured_of(leaves: list[Leaf], stands_s: float, horizon_s: float) -> Measured:
    """What a warm-up finds of such a state, all but its path."""
    (dirty, new), (later, _) = changed(leaves, 1), changed(leaves, 2)
    return Measured(
        num_bytes=sum(leaf.size for leaf in leaves),
        source_hash_rate=BEYOND,
        destination_hash_rate=BEYOND,
        path_rate=1.0,
        horizon_s=horizon_s,
        row_rate=BEYOND,
        copy_rate=BEYOND,
        dirty_bytes=dirty,
        new_bytes=new,
        further_bytes=later - dirty,
        period_s=PERIOD_S,
        patience_s=100.0,
        num_slots_free=1,
        num_source_slots_free=1,
        fixed=Fixed(freeze_s=0.0, install_s=0.0, commit_s=0.0, reconcile_s=0.0, num_moves=1, rest_s=stands_s),
    )


def left_after(leaves: list[Leaf], known: Measured, phase: float, stands_s: float) -> tuple[int, int]:
    """Return what is left to the pause of a move that is admitted, and what that bears. Its rounds have to end well."""
    most = affordable(admit(known, Strategy.PRE_COPY), known)
    assert most is not None
    course = Course(leaves, known.rate("path_rate"), phase, stands_s)
    verdict = course.rounds(most, known.patience_s)
    assert verdict.next is Next.BOUNDARY, verdict.why
    return course.left(), most.in_pause


@settings(max_examples=40, deadline=None)
@given(
    leaves=leaves_of,
    stands_s=st.floats(0.1, 0.6),
    horizon_s=st.floats(0.2, 1.2),
    faster=st.floats(1.0001, 2.0),
    phase=st.floats(0.001, 0.999),
)
def test_what_is_admitted_converges_whatever_it_is_and_whenever_its_rounds_begin(
    leaves: list[Leaf], stands_s: float, horizon_s: float, faster: float, phase: float
) -> None:
    """To within what of one leaf: those that are written alike lie side by side, and come over in their order."""
    assume(any(leaf.kind != "still" for leaf in leaves))
    known = measured_of(leaves, stands_s, horizon_s)
    rate = least(known, Strategy.PRE_COPY, "path_rate")
    assert rate is not None
    left, most = left_after(leaves, replace(known, path_rate=faster * rate), phase, stands_s)
    assert left <= most + LARGEST


@pytest.mark.parametrize(("stands_s", "horizon_s"), [(0.44, 1.16), (0.3, 0.9), (0.6, 1.2)])
def test_a_window_is_left_as_is_expected_just_above_the_least_bandwidth_and_no_less_than_three_quarters_of_it(
    stands_s: float, horizon_s: float
) -> None:
    known = measured_of(WINDOW, stands_s, horizon_s)
    rate = least(known, Strategy.PRE_COPY, "path_rate")
    assert rate is not None
    known = replace(known, path_rate=1.05 * max(rate, known.rate("new_bytes")))
    found = [left_after(WINDOW, known, phase, stands_s) for phase in PHASES]
    expected = admit(known, Strategy.PRE_COPY).expected_s * known.rate("path_rate")
    assert all(left <= most for left, most in found)
    assert 0.7 * expected <= sum(left for left, _ in found) / len(found) <= expected


def test_a_path_that_hardly_carries_what_blocks_write_in_turn_everywhere_is_refused_before_a_byte_travels() -> None:
    """By the time that all of a ring has come twice, all of it has changed."""
    ring = [Leaf("ring", 16)] * 12
    known = replace(measured_of(ring, 0.3, 0.6), path_rate=1.1 * 48)
    assert admit(known, Strategy.PRE_COPY).reason == "too_slow"
    assert settled(known).changing == 192


@settings(max_examples=100)
@given(anything(), st.floats(0.0, 1e10))
def test_as_much_as_is_bearable_leaves_what_was_asked_for(measured: Measured, most: float) -> None:
    found = settled(roomy(measured))
    bearable = found.bearable(most)
    assert bearable >= most * (1 - 1e-9)
    if most >= found.new and found.carried >= found.new:
        assert replace(found, differs=bearable).left <= most * (1 + 1e-6) + 1e-3
