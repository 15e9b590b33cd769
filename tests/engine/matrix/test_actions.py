"""Keys become controls within their own block, and no tap is lost."""

import pytest

from worldmove.engine.base import KeyChange
from worldmove.engine.matrix.actions import CONTROLS, REST, Stand, plan

FRAMES = 12


def change(key: str, *, down: bool, number: int = 1) -> KeyChange:
    return KeyChange(number=number, key=key, down=down)


def test_without_keys_nothing_moves() -> None:
    planned = plan(Stand(), (), FRAMES)
    assert planned.controls == (REST,) * FRAMES
    assert {note.action for note in planned.notes} == {"stay"}
    assert planned.stand == Stand()


@pytest.mark.parametrize("key", CONTROLS)
def test_a_key_that_is_held_acts_in_every_frame_and_in_the_next_block(key: str) -> None:
    planned = plan(Stand(), [change(key, down=True)], FRAMES)
    again = plan(planned.stand, (), FRAMES)
    assert planned.controls == again.controls == (CONTROLS[key],) * FRAMES


def test_a_tap_within_one_frame_acts_in_that_frame() -> None:
    taps = [change("up", down=down, number=n) for n, down in enumerate([True, False] * 40)]
    planned = plan(Stand(), taps, FRAMES)
    assert {note.action for note in planned.notes} == {"up"}
    assert planned.stand == Stand(number=79, pose=(-12, 0))


def test_changes_are_spread_in_their_order() -> None:
    changes = [change("up", down=True), change("left", down=True), change("up", down=False), change("left", down=False)]
    actions = [note.action for note in plan(Stand(), changes, FRAMES).notes]
    assert actions == 3 * ["up"] + 3 * ["left"] + 3 * ["left"] + 3 * ["stay"]


def test_two_keys_act_together() -> None:
    planned = plan(Stand(held=("up", "left")), (), FRAMES)
    assert planned.controls[0] == (0, -1, 1, 0, 1, 0)
    assert planned.notes[0].action == "left"


def test_a_keyboards_repeat_does_nothing() -> None:
    stand = Stand(held=("up", "left"))
    assert plan(stand, [change("up", down=True)], FRAMES).notes[0].action == "left"
