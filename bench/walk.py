"""The scripted walk: which keys go down or up after which block. Pure, and the same for every run of a seed.

A direction is held for some blocks and another follows at once, so the world never rests by itself; now and then
a flag is planted, or a key is tapped within one block.
"""

import random
from collections.abc import Sequence

DIRECTIONS = ("up", "down", "left", "right")
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
HELD_BLOCKS = (2, 7)
FLAG_SHARE = 0.3
TAP_SHARE = 0.3

Change = tuple[str, bool]
"""(key, down)."""


class Walk:
    """The changes of every block, made as far as they are asked for."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._steps: list[tuple[Change, ...]] = []
        self._held: str | None = None

    def changes(self, block: int) -> Sequence[Change]:
        """Return what the player does for a block."""
        while len(self._steps) <= block:
            self._extend()
        return self._steps[block]

    def _extend(self) -> None:
        """Turn; then go on for some blocks, on which a flag or a tap may come."""
        turn = self._rng.choice([key for key in DIRECTIONS if key != self._held])
        before = [] if self._held is None else [(self._held, False)]
        self._steps.append((*before, (turn, True)))
        self._held = turn
        for _ in range(self._rng.randint(*HELD_BLOCKS) - 1):
            self._steps.append(self._on_the_way(turn))

    def _on_the_way(self, held: str) -> tuple[Change, ...]:
        chance = self._rng.random()
        if chance < FLAG_SHARE:
            return (("flag", True), ("flag", False))
        if chance < FLAG_SHARE + TAP_SHARE:
            tap = OPPOSITE[held]
            return ((tap, True), (tap, False))
        return ()
