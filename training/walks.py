"""Walks: what a player's keys make of 64 frames. Errands out and back, rectangles, wandering, rests, flags."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from worldmove.engine.reference.actions import ACTIONS

STAY, UP, DOWN, LEFT, RIGHT, FLAG = range(len(ACTIONS))
OPPOSITE = {UP: DOWN, DOWN: UP, LEFT: RIGHT, RIGHT: LEFT}
MOVES = (UP, DOWN, LEFT, RIGHT)


def walks(count: int, num_frames: int, seed: int) -> NDArray[np.int64]:
    """Actions of many walks: [count, num_frames]."""
    rng = np.random.default_rng(seed)
    return np.stack([walk(num_frames, rng) for _ in range(count)])


def walk(num_frames: int, rng: np.random.Generator) -> NDArray[np.int64]:
    kind = rng.choice(4, p=(0.45, 0.25, 0.22, 0.08))
    makers = (errands, rectangles, wandering, rests)
    flags = rng.choice((0.0, 0.03, 0.08), p=(0.4, 0.3, 0.3))
    actions: list[int] = []
    for action in makers[kind](rng):
        # The first frame shows a country without flags, so that none is ever there without having been planted.
        while actions and rng.random() < flags:
            actions.append(FLAG)
        actions.append(action)
        if len(actions) >= num_frames:
            break
    return np.array(actions[:num_frames])


def errands(rng: np.random.Generator) -> Iterator[int]:
    """Go somewhere, perhaps by a side step, and come back."""
    while True:
        ahead = int(rng.choice(MOVES))
        side = int(rng.choice([move for move in MOVES if move not in (ahead, OPPOSITE[ahead])]))
        steps = int(rng.integers(2, 24))
        turns = int(rng.integers(0, 3)) if rng.random() < 0.4 else 0
        yield from [ahead] * steps + [side] * turns
        yield from [STAY] * int(rng.integers(0, 3))
        yield from [OPPOSITE[ahead]] * steps + [OPPOSITE[side]] * turns
        yield from [STAY] * int(rng.integers(0, 5))


def rectangles(rng: np.random.Generator) -> Iterator[int]:
    """Around a rectangle, again and again."""
    first, second = (UP, LEFT) if rng.random() < 0.5 else (RIGHT, DOWN)
    first, second = (first, second) if rng.random() < 0.5 else (second, first)
    while True:
        long, short = int(rng.integers(2, 13)), int(rng.integers(1, 9))
        for move, steps in ((first, long), (second, short), (OPPOSITE[first], long), (OPPOSITE[second], short)):
            yield from [move] * steps


def wandering(rng: np.random.Generator) -> Iterator[int]:
    """Wherever fancy leads, straight on more often than not."""
    move = int(rng.choice(MOVES))
    while True:
        yield STAY if rng.random() < 0.08 else move
        if rng.random() < 0.25:
            move = int(rng.choice(MOVES))


def rests(rng: np.random.Generator) -> Iterator[int]:
    """Mostly looking, with short ways between."""
    while True:
        yield from [STAY] * int(rng.integers(1, 9))
        yield from [int(rng.choice(MOVES))] * int(rng.integers(1, 5))
