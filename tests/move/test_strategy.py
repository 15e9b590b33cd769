"""Strategies by name: those that are wired, and those that are not."""

import pytest

from worldmove.errors import MoveRefused
from worldmove.move.strategy import WIRED, Strategy, pick, slug


def test_a_move_of_which_nothing_is_said_is_a_boundary_copy() -> None:
    assert pick() is Strategy.BOUNDARY_COPY


@pytest.mark.parametrize("strategy", WIRED)
def test_a_strategy_that_is_wired_has_two_spellings(strategy: Strategy) -> None:
    assert pick(strategy.value) is pick(slug(strategy)) is strategy


@pytest.mark.parametrize("name", [*(strategy.value for strategy in Strategy if strategy not in WIRED), "teleport"])
def test_a_strategy_that_is_not_wired_is_refused_by_name_whatever_its_reckoning(name: str) -> None:
    with pytest.raises(MoveRefused, match=f"no strategy named {name}; there is boundary copy"):
        pick(name)


def test_what_costs_least_beside_its_pause_comes_first() -> None:
    assert next(iter(Strategy)) is Strategy.BOUNDARY_COPY
    assert tuple(strategy for strategy in Strategy if strategy in WIRED) == WIRED


def test_only_a_boundary_copy_does_nothing_while_the_session_is_played() -> None:
    assert [strategy for strategy in Strategy if not strategy.begins_early] == [Strategy.BOUNDARY_COPY]
