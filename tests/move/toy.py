"""A test engine: a session of a few kilobytes that is as awkward to move as a real one.

It rebinds tensors in every block (so that they leave their slot), has two views of one storage, a generator in
the middle of its stream, and inputs that were accepted and not used yet.
"""

import hashlib
from typing import Any

import torch

from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.capture import Capture, capture
from worldmove.state.landing import materialise
from worldmove.state.placement import Placement

TYPES: dict[str, type] = {}


class Toy:
    """One session."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.window = torch.zeros(8, 16)
        self.base = torch.arange(96, dtype=torch.float32).reshape(12, 8)
        self.late: torch.Tensor | None = None
        self.block = 0
        self.waiting: list[str] = []

    @classmethod
    def of(cls, tree: dict[str, Any]) -> "Toy":
        """Make a session over a state's own memory."""
        toy = cls.__new__(cls)
        toy.generator = tree["generator"]
        toy.window, toy.base, toy.late = tree["window"], tree["base"], tree["late"]
        toy.block, toy.waiting = tree["block"], list(tree["waiting"])
        return toy

    @property
    def tree(self) -> dict[str, Any]:
        """The whole state."""
        return {
            "generator": self.generator,
            "window": self.window,
            "base": self.base,
            "part of base": self.base[2:5, 1:],
            "late": self.late,
            "block": self.block,
            "waiting": list(self.waiting),
        }

    def step(self, inputs: tuple[str, ...]) -> str:
        """Advance one block; return the digest of its picture."""
        noise = torch.rand(1, 16, generator=self.generator)
        self.window = torch.cat([self.window[1:], noise + float(sum(map(ord, "".join(self.waiting))))])
        self.base[2:5, 1:] += self.window.mean()
        if self.block == 2:
            self.late = torch.full((5,), 7, dtype=torch.bfloat16)
        self.block += 1
        self.waiting = list(inputs)
        picture = hashlib.sha256(self.window.numpy().tobytes() + self.base.numpy().tobytes())
        return picture.hexdigest()

    def capture(self) -> Capture:
        """Resolve the state."""
        return capture(self.tree, TYPES)


def install(manifest: Manifest, placement: Placement, arena: Arena) -> Toy:
    """Make a session over what landed in an arena."""
    return Toy.of(materialise(manifest, placement, arena, TYPES))


def frames_of_a_world_that_never_moved(seed: int, inputs: list[tuple[str, ...]]) -> list[str]:
    """The reference: every picture from the first block on."""
    toy = Toy(seed)
    return [toy.step(block) for block in inputs]
