"""The procedural world takes keys as the island does: what the page is tested on behaves like what it plays."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.browser.fake_world import FakeWorld
from worldmove.engine.base import KeyChange
from worldmove.engine.reference.actions import KEYS, Controls, accept, next_action

Lists = list[list[tuple[str, bool]]]
NUM_FRAMES = 2


@settings(max_examples=40)
@given(lists=st.lists(st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=4), max_size=6))
def test_the_same_keys_lead_to_the_same_actions_as_on_the_island(lists: Lists) -> None:
    world, controls, number = FakeWorld(seed=3), Controls(), 0
    for pressed in lists:
        changes = [KeyChange(number=number + n, key=key, down=down) for n, (key, down) in enumerate(pressed, 1)]
        number += len(changes)
        made = world.step([(change.number, change.key, change.down) for change in changes])
        repeats, controls = controls.held, accept(controls, changes)
        assert len(made) == NUM_FRAMES
        for _, note in made:
            action, controls = next_action(controls, repeats)
            assert (note.action, note.number) == (action, controls.number)


def test_a_tap_cut_between_two_lists_is_one_step() -> None:
    world = FakeWorld(seed=3)
    world.step([(1, "right", True)])
    world.step([(2, "right", False)])
    assert world.pose == (0, 1)
