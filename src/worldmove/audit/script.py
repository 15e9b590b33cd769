"""What the player of an audit does: the same in every run, and varied enough that everything is used.

Rules of this file:

1. Two boundaries. At the *busy* one more changes wait than a block can use, and keys are held; at the *calm* one
   nothing waits any more. A leaf that is not missed at one of them is missed at the other.
2. Both lie behind all that came before, so windows have rolled and generators are mid-use.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.engine.base import KeyChange

SEED = 20_071_022
CALM_BLOCKS = 4
"""Blocks without a change, from the busy boundary to the calm one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The closed list of each block, and the two boundaries (the number of blocks before each)."""

    lists: Sequence[Sequence[KeyChange]]
    busy: int
    calm: int

    @property
    def boundaries(self) -> tuple[int, int]:
        return self.busy, self.calm


def write_script(keys: Sequence[str], *, before: int, blocks: int, frames_per_block: int) -> Script:
    """Write the inputs of an audit: ``before`` blocks to the busy boundary, ``blocks`` after each of the two."""
    hand = _Hand(keys=keys, dice=random.Random(SEED), down=[])
    lists = [hand.some() for _ in range(before - 1)]
    lists.append(hand.burst(2 * frames_per_block + 2))
    lists += [[] for _ in range(CALM_BLOCKS + 1)]  # one more, in which no new change hides what the last one left
    lists += [hand.some() for _ in range(blocks - 1)]
    return Script(lists=lists, busy=before, calm=before + CALM_BLOCKS)


@dataclass(slots=True, kw_only=True)
class _Hand:
    keys: Sequence[str]
    dice: random.Random
    down: list[str]
    number: int = 0

    def some(self) -> list[KeyChange]:
        """None to three changes of different keys."""
        return [
            self._change(key) for key in self.dice.sample(self.keys, k=min(len(self.keys), self.dice.randint(0, 3)))
        ]

    def burst(self, num_changes: int) -> list[KeyChange]:
        """Many changes in a row: every key let go, then pressed, again and again."""
        if not self.keys:
            return []
        released = [self._change(key) for key in list(self.down)]
        presses = [self.keys[i % len(self.keys)] for i in range(num_changes)]
        return released + [self._change(key) for key in presses]

    def _change(self, key: str) -> KeyChange:
        self.number += 1
        is_down = key not in self.down
        if is_down:
            self.down.append(key)
        else:
            self.down.remove(key)
        return KeyChange(number=self.number, key=key, down=is_down)
