"""A toy world whose memory rolls in place, as that of a large model does: what it writes anew is a small part of it."""

from typing import Any

import torch

from tests.move.toy import TYPES, Toy
from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.capture import Capture, capture
from worldmove.state.landing import materialise
from worldmove.state.placement import Placement

ROW_BYTES = 32
NUM_ROWS, BY = 24, 3
PLACES, FRAMES = 5, 6
STATIC_BYTES = 1024
FIRST_BLOCKS = NUM_ROWS // BY
"""From then on its windows are full."""


class Rolling(Toy):
    """One session: a window that rolls, one that rolls inside each of many lines, and much that never changes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.keys = torch.zeros(1, NUM_ROWS, 8)
        self.mouse = torch.zeros(PLACES, FRAMES, 8)
        self.static = torch.arange(STATIC_BYTES // 4, dtype=torch.float32).reshape(-1, 8)

    @classmethod
    def of(cls, tree: dict[str, Any]) -> "Rolling":
        toy = super().of(tree)
        assert isinstance(toy, Rolling)
        toy.keys, toy.mouse, toy.static = tree["keys"], tree["mouse"], tree["static"]
        return toy

    @property
    def tree(self) -> dict[str, Any]:
        return {**super().tree, "keys": self.keys, "mouse": self.mouse, "static": self.static}

    def step(self, inputs: tuple[str, ...]) -> str:
        picture = super().step(inputs)
        for cache in (self.keys, self.mouse):
            cache[:, :-BY] = cache[:, BY:].clone()
            cache[:, -BY:] = torch.rand(cache[:, -BY:].shape, generator=self.generator)
        return picture

    def capture(self) -> Capture:
        return capture(self.tree, TYPES)


def install(manifest: Manifest, placement: Placement, arena: Arena) -> Rolling:
    """Make a session over what landed in an arena."""
    return Rolling.of(materialise(manifest, placement, arena, TYPES))


def reference(seed: int, inputs: list[tuple[str, ...]]) -> list[str]:
    """Every picture of a world that never moved."""
    toy = Rolling(seed)
    return [toy.step(block) for block in inputs]
