"""Who takes over, and what counts as a copy."""

from tests.fleet.fakes import copy_of
from worldmove.fleet.orphans import num_current, successor, that_may_go_on


def test_the_retired_copy_that_is_furthest_on_takes_over() -> None:
    assert successor([("a", copy_of("s", "retired", block=4)), ("b", copy_of("s", "retired", block=5))]) == "b"


def test_nobody_takes_over_while_a_copy_can_ask_for_the_session_itself() -> None:
    assert successor([("a", copy_of("s", "retired")), ("b", copy_of("s", "frozen"))]) is None


def test_a_shadow_that_nobody_will_grant_the_session_is_not_waited_for() -> None:
    held = [("a", copy_of("s", "retired")), ("b", copy_of("s", "shadow")), ("c", copy_of("s", "following"))]
    assert successor(that_may_go_on(held, may_be_granted=True)) is None
    assert successor(that_may_go_on(held, may_be_granted=False)) == "a"


def test_a_retired_copy_is_still_a_copy_and_a_throw_away_one_is_none() -> None:
    assert num_current([copy_of("s", "retired"), copy_of("s", "throwaway")]) == 1
