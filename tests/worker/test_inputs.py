"""The lists that a copy holds."""

import pytest

from worldmove.engine.base import KeyChange
from worldmove.worker import inputs
from worldmove.worker.inputs import InputLists

DOWN = (KeyChange(number=1, key="w", down=True),)
UP = (KeyChange(number=2, key="w", down=False),)


def test_a_list_once_taken_is_never_replaced() -> None:
    lists = InputLists()
    lists.put(3, DOWN)
    lists.put(3, UP)
    assert lists.get(3) == DOWN


def test_lists_of_earlier_blocks_are_dropped_and_stay_away_when_they_come_again() -> None:
    lists = InputLists()
    for block in range(5):
        lists.put(block, DOWN)
    lists.forget_before(3)
    lists.put(1, UP)
    assert [lists.get(block) for block in range(5)] == [None, None, None, DOWN, DOWN]


def test_a_list_that_is_ahead_waits_for_its_block() -> None:
    lists = InputLists()
    lists.put(9, UP)
    lists.forget_before(7)
    assert lists.get(8) is None
    assert lists.get(9) == UP


def test_a_gateway_that_never_acknowledges_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_LISTS", 10)
    lists = InputLists()
    for block in range(25):
        lists.put(block, DOWN)
    assert [block for block in range(25) if lists.get(block) is not None] == list(range(15, 25))
