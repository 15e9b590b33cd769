from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldmove.engine.base import KeyChange
from worldmove.engine.reference.actions import KEYS, MAX_WAITING, Controls, accept, moved, next_action
from worldmove.errors import UserError


def changes(*words: str, first: int = 1) -> list[KeyChange]:
    """``+up`` goes down, ``-up`` comes up."""
    return [KeyChange(number=first + n, key=word[1:], down=word[0] == "+") for n, word in enumerate(words)]


def actions(controls: Controls, count: int, before: Controls | None = None) -> tuple[list[str], Controls]:
    """The next frames of one block, which began with what ``before`` held."""
    repeats = (before or Controls()).held
    taken = []
    for _ in range(count):
        action, controls = next_action(controls, repeats)
        taken.append(action)
    return taken, controls


def test_a_tap_moves_one_step_however_short() -> None:
    taken, controls = actions(accept(Controls(), changes("+up", "-up")), 3)
    assert taken == ["up", "stay", "stay"]
    assert controls == Controls(number=2)


def test_a_tap_that_two_lists_share_moves_one_step() -> None:
    taken, down = actions(accept(Controls(), changes("+up")), 2)
    assert taken == ["up", "stay"]
    taken, controls = actions(accept(down, changes("-up", first=2)), 2, down)
    assert taken == ["stay", "stay"]
    assert controls == Controls(number=2)


def test_a_held_key_moves_with_every_frame_from_the_block_after_its_press_on() -> None:
    taken, controls = actions(accept(Controls(), changes("+left")), 3)
    assert taken == ["left", "stay", "stay"]
    assert controls.held == ("left",)
    assert actions(controls, 3, controls) == (["left", "left", "left"], controls)


def test_the_key_pressed_last_leads_and_the_other_takes_over_when_it_comes_up() -> None:
    taken, controls = actions(accept(Controls(), changes("+left", "+up")), 3)
    assert taken == ["left", "up", "stay"]
    assert actions(controls, 2, controls)[0] == ["up", "up"]
    taken, _ = actions(accept(controls, changes("-up", first=3)), 2, controls)
    assert taken == ["left", "left"]


def test_a_flag_is_planted_once_for_a_press_while_the_walk_goes_on() -> None:
    walking = Controls(held=("right",))
    taken, _ = actions(accept(walking, changes("+flag")), 4, walking)
    assert taken == ["flag", "right", "right", "right"]


def test_a_keyboards_repeat_adds_nothing() -> None:
    taken, controls = actions(accept(Controls(), changes("+flag", "+flag", "+flag")), 3)
    assert taken == ["flag", "stay", "stay"]
    assert controls == Controls(held=("flag",), number=3)


def test_presses_beyond_the_frames_wait_in_order() -> None:
    taken, controls = actions(accept(Controls(), changes("+up", "-up", "+up", "-up", "+left", "-left")), 2)
    assert taken == ["up", "up"]
    assert [change.number for change in controls.waiting] == [5, 6]
    assert controls.number == 4
    assert actions(controls, 2) == (["left", "stay"], Controls(number=6))


def test_a_release_of_a_key_that_is_not_down_is_harmless() -> None:
    assert actions(accept(Controls(), changes("-up")), 1) == (["stay"], Controls(number=1))


def test_an_unknown_key_is_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match="no key 'jump'"):
        accept(Controls(), changes("+jump"))


def test_poses_follow_actions() -> None:
    assert [moved((3, 5), action) for action in ("stay", "up", "down", "left", "right", "flag")] == [
        (3, 5),
        (2, 5),
        (4, 5),
        (3, 4),
        (3, 6),
        (3, 5),
    ]


words = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=12)


@given(words)
def test_every_new_press_of_the_flag_acts_once_and_all_changes_are_used(presses: Sequence[tuple[str, bool]]) -> None:
    both = [KeyChange(number=n, key=key, down=down) for n, (key, down) in enumerate(presses, 1)]
    held: set[str] = set()
    planted = 0
    for change in both:
        planted += change.down and change.key == "flag" and "flag" not in held
        held = held | {change.key} if change.down else held - {change.key}
    taken, controls = actions(accept(Controls(), both), len(both))
    assert taken.count("flag") == planted
    assert set(controls.held) == held
    assert len(controls.held) == len(held)
    assert not controls.waiting


@given(words, words)
def test_how_changes_are_cut_into_lists_decides_nothing_while_they_wait(
    first: Sequence[tuple[str, bool]], second: Sequence[tuple[str, bool]]
) -> None:
    both = [KeyChange(number=n, key=key, down=down) for n, (key, down) in enumerate([*first, *second], 1)]
    cut = len(first)
    at_once = accept(Controls(), both)
    in_two = accept(accept(Controls(), both[:cut]), both[cut:])
    assert actions(at_once, 30) == actions(in_two, 30)


@given(st.lists(words, max_size=8), st.integers(0, MAX_WAITING))
def test_however_much_is_pressed_no_more_waits_and_the_keys_are_as_they_were_left(
    lists: Sequence[Sequence[tuple[str, bool]]], before: int
) -> None:
    controls = accept(Controls(), changes(*["+flag", "-flag"] * before))
    held: set[str] = set()
    number = 2 * before
    for each in [*lists, [("up", True), ("up", False)] * MAX_WAITING]:
        pressed = [KeyChange(number=number + n, key=key, down=down) for n, (key, down) in enumerate(each, 1)]
        number += len(pressed)
        for change in pressed:
            held = held | {change.key} if change.down else held - {change.key}
        controls = accept(controls, pressed)
        assert len(controls.waiting) <= MAX_WAITING
        assert controls.number + len(controls.waiting) == number, "each is used, in order"
    _, controls = actions(controls, MAX_WAITING)
    assert set(controls.held) == held
    assert controls.number == number
    assert not controls.waiting


def test_as_many_as_may_wait_all_act() -> None:
    taken, _ = actions(accept(Controls(), changes(*["+flag", "-flag"] * (MAX_WAITING // 2))), MAX_WAITING)
    assert taken.count("flag") == MAX_WAITING // 2
