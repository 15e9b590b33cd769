"""What may be left for the end of a move that pulls in rounds."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings

from tests.move.measuring import FAST, anything, roomy
from worldmove.move.admission import admit
from worldmove.move.affordable import affordable
from worldmove.move.measured import Fixed, Measured
from worldmove.move.reckoning.rest import REST
from worldmove.move.strategy import Strategy


def test_as_much_may_be_left_as_the_path_carries_in_what_the_other_terms_leave() -> None:
    """By hand: of 250 ms other terms take 20.8, and 4 GB/s carry 916.8 MB in the rest, and 2 GB until a boundary."""
    verdict = admit(FAST, Strategy.PRE_COPY)
    others_s = sum(term.seconds for term in verdict.terms if term.name != "land")
    found = affordable(verdict, FAST)
    assert found is not None
    both = 4e9 * (0.250 - others_s) + 2e9
    assert found.standing == pytest.approx((both + (both**2 - 4 * 2e9 * 6e6) ** 0.5) / 2, abs=2)
    rested = replace(FAST, fixed=Fixed(num_moves=1, rest_s=0.1))
    verdict = admit(rested, Strategy.PRE_COPY)
    others_s = sum(term.seconds for term in verdict.terms if term.name != "land")
    found = affordable(verdict, rested)
    assert found is not None
    # The freeze may wait for the next list: half of the 250 ms is over by then.
    both = 4e9 * (0.125 + 0.100 - others_s) + 2e9
    assert found.standing == pytest.approx((both + (both**2 - 4 * 2e9 * 6e6) ** 0.5) / 2, abs=2)
    assert found.in_pause == pytest.approx(4e9 * (0.125 - others_s), abs=2)


@pytest.mark.parametrize("strategy", [Strategy.BOUNDARY_COPY, Strategy.REPLAY])
def test_strategies_without_rounds_are_told_nothing(strategy: Strategy) -> None:
    assert affordable(admit(FAST, strategy), FAST) is None


def test_where_nobody_waits_there_is_no_limit_but_what_the_ends_bear() -> None:
    nobody = replace(FAST, horizon_s=inf)
    assert affordable(admit(nobody, Strategy.STREAMING), nobody) is None
    held = replace(nobody, still_s=1.0)
    found = affordable(admit(held, Strategy.STREAMING), held)
    assert found is not None
    assert 3.9e9 < found.in_pause < 4e9
    assert found.in_pause <= found.standing < 6e9


def test_where_nobody_waits_a_rest_that_was_always_long_enough_is_no_longer_than_the_ends_bear() -> None:
    held = replace(FAST, horizon_s=inf, still_s=1.0, fixed=Fixed(is_rested=True))
    found = affordable(admit(held, Strategy.PRE_COPY), held)
    assert found is not None
    assert 4e9 * (0.9 + REST) < found.standing - 2e9 < 4e9 * (1.0 + REST)
    assert found.in_pause < 4e9 * 1.0


def test_of_what_was_not_measured_nothing_is_said() -> None:
    unmeasured = replace(FAST, path_rate=None)
    assert affordable(admit(unmeasured, Strategy.PRE_COPY), unmeasured) is None


@settings(max_examples=60)
@given(anything())
def test_a_move_that_is_admitted_may_leave_what_it_is_reckoned_with(measured: Measured) -> None:
    measured = roomy(measured)
    for strategy in (Strategy.PRE_COPY, Strategy.STREAMING):
        verdict = admit(measured, strategy)
        if verdict.admitted:
            land_s = next(term.seconds for term in verdict.terms if term.name == "land") - measured.fixed.land_s
            found = affordable(verdict, measured)
            assert found is not None
            assert found.standing >= found.in_pause >= int(0.999 * measured.rate("path_rate") * land_s) - 1
            assert verdict.settled is not None
            assert found.standing >= int(verdict.settled.differs)
