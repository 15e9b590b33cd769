"""A test engine without torch: a state of some thousand bytes that is as awkward to move as a real one.

It rebinds arrays in every block, has two views of one storage and one of another type over the same bytes, a
generator in the middle of its stream, a leaf that appears late, and inputs that were accepted and not used yet.
"""

import hashlib
from typing import Any

import numpy as np

from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.capture import Capture, capture
from worldmove.state.landing import materialise
from worldmove.state.placement import Placement
from worldmove.worker.foreign import engine_asked


class Pond:
    """One session."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.Generator(np.random.PCG64(seed))
        self.window = np.zeros((6, 16), dtype=np.float32)
        self.base = np.arange(96, dtype=np.float32).reshape(12, 8)
        self.trail = np.zeros(40, dtype=np.int64)
        self.late: np.ndarray[Any, Any] | None = None
        self.block = 0
        self.waiting: list[str] = []

    @classmethod
    def of(cls, tree: dict[str, Any]) -> "Pond":
        """Make a session over a state's own memory."""
        pond = cls.__new__(cls)
        pond.generator = tree["generator"]
        pond.window, pond.base, pond.trail, pond.late = tree["window"], tree["base"], tree["trail"], tree["late"]
        pond.block, pond.waiting = tree["block"], list(tree["waiting"])
        return pond

    @property
    def tree(self) -> dict[str, Any]:
        """The whole state."""
        return {
            "generator": self.generator,
            "window": self.window,
            "base": self.base,
            "part of base": self.base[2:5, 1:],
            "bits of trail": self.trail.view(np.uint8)[8:24],
            "trail": self.trail,
            "late": self.late,
            "block": self.block,
            "waiting": list(self.waiting),
        }

    def step(self, inputs: tuple[str, ...]) -> str:
        """Advance one block; return the digest of its picture."""
        noise = self.generator.random((1, 16), dtype=np.float32)
        self.window = np.concatenate([self.window[1:], noise + np.float32(len(self.waiting))])
        with np.errstate(all="ignore"):  # damage that got in may be no number
            self.base[2:5, 1:] += self.window.mean()
        self.trail[self.block % 40] = int.from_bytes(self.window[-1].tobytes()[:7], "little")
        if self.block == 2:
            self.late = np.full(5, 7, dtype=np.float16)
        self.block += 1
        self.waiting = list(inputs)
        return hashlib.sha256(self.window.tobytes() + self.base.tobytes() + self.trail.tobytes()).hexdigest()

    def capture(self) -> Capture:
        """Resolve the state."""
        return capture(self.tree, {})

    def bytes_of(self) -> dict[str, object]:
        """Every leaf as plain bytes, without any code of the product: what *bit-identical* is judged by."""
        tree = self.tree
        generator = tree.pop("generator").bit_generator.state
        return {path: _plain(value) for path, value in tree.items()} | {"generator": generator}


def _plain(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.strides, value.tobytes())
    return value


def install(manifest: Manifest, placement: Placement, arena: Arena) -> Pond:
    """Make a session over what landed in an arena."""
    tree = materialise(manifest, placement, arena, {})
    with engine_asked("install"):
        return Pond.of(tree)
