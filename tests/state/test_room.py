"""Where in an arena something finds room."""

import random

import pytest

from worldmove.errors import ArenaFull
from worldmove.state.room import Room

SIZE = 16384


def first_fit(taken: list[tuple[int, int]], num_bytes: int, remainder: int) -> int | None:
    """The first place, looked for byte by byte."""
    for place in range(remainder, SIZE - num_bytes + 1, 256):
        if all(place + num_bytes <= begin or place >= end for begin, end in taken):
            return place
    return None


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_first_place_that_fits_and_nothing_is_given_twice(seed: int) -> None:
    rng = random.Random(seed)
    taken, at = [], 0
    while at < SIZE - 3000:
        at += rng.randrange(900)
        length = rng.randrange(1, 1200)
        taken.append((at, at + length))
        at += length
    room = Room(taken, SIZE)
    for _ in range(30):
        num_bytes, remainder = rng.randrange(1, 900), rng.choice((0, 0, 8, 255))
        expected = first_fit(taken, num_bytes, remainder)
        if expected is None:
            with pytest.raises(ArenaFull):
                room.take(num_bytes, remainder)
            continue
        assert room.take(num_bytes, remainder) == expected
        taken.append((expected, expected + num_bytes))
