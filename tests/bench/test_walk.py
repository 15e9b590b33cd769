from itertools import chain

from bench.walk import Walk

BLOCKS = 400


def test_two_walks_of_one_seed_are_one_walk() -> None:
    first, second = Walk(5), Walk(5)
    late = second.changes(BLOCKS)
    assert [first.changes(block) for block in range(BLOCKS + 1)][-1] == late
    assert [Walk(6).changes(block) for block in range(BLOCKS)] != [first.changes(block) for block in range(BLOCKS)]


def test_a_key_is_always_down_so_the_world_does_not_rest() -> None:
    walk = Walk(1)
    down: set[str] = set()
    for block in range(BLOCKS):
        for key, is_down in walk.changes(block):
            (down.add if is_down else down.discard)(key)
        assert len(down) == 1


def test_flags_and_every_direction_come_up() -> None:
    walk = Walk(1)
    pressed = {key for key, down in chain.from_iterable(walk.changes(block) for block in range(BLOCKS)) if down}
    assert pressed == {"up", "down", "left", "right", "flag"}
