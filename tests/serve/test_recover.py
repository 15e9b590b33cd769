"""The way back: one tap for a step, newest first."""

from worldmove.engine.base import KeyChange
from worldmove.engine.reference.actions import Controls, accept, next_action
from worldmove.serve.recover import way_back


def test_the_way_back_undoes_each_step_newest_first_and_leaves_out_what_has_no_opposite() -> None:
    lists = way_back(("up", "flag", "right", "right"), 2)
    taps = [[(change.key, change.down) for change in changes] for changes in lists]
    left, down = [("left", True), ("left", False)], [("down", True), ("down", False)]
    assert taps == [[*left, *left], down]
    assert [change.number for changes in lists for change in changes] == [1, 2, 3, 4, 5, 6]


def test_each_tap_moves_a_world_of_the_reference_engine_by_exactly_one_step() -> None:
    controls, actions = Controls(), []
    for changes in way_back(("up", "up", "left", "down", "right"), 2):
        controls = accept(controls, [KeyChange(number=c.number, key=c.key, down=c.down) for c in changes])
        for _ in range(2):
            action, controls = next_action(controls, ())
            actions.append(action)
    assert actions == ["left", "up", "right", "down", "down", "stay"]


def test_where_nothing_was_walked_there_is_no_way_back() -> None:
    assert way_back((), 2) == way_back(("flag",), 2) == []
