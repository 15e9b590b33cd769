"""The one strategy that is built, and those that are not."""

import pytest

from worldmove.errors import MoveRefused
from worldmove.move.strategy import Strategy, pick


def test_a_move_is_a_boundary_copy() -> None:
    assert pick() is pick("boundary copy") is Strategy.BOUNDARY_COPY


def test_a_strategy_that_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(MoveRefused, match="no strategy named replay; there is boundary copy"):
        pick("replay")
