"""A pond with a stream in it: a part that is a function of little, and can be stepped by itself elsewhere."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.attacks.pond import Pond
from tests.move.harness import World
from worldmove.errors import StateRefused
from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.landing import materialise
from worldmove.state.placement import Placement
from worldmove.worker.foreign import engine_asked

DECODER = "decoder"
SHAPE = (8, 16)
HANDED_BYTES = 4 * SHAPE[1]


class Brook(Pond):
    """One session. Its decoder's first feature is written in place, and its second is bound anew."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.decoder = [np.zeros(SHAPE, dtype=np.float32) for _ in range(2)]
        self.handed: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, tree: dict[str, Any]) -> "Brook":
        brook = super().of(tree)
        assert isinstance(brook, Brook)
        brook.decoder, brook.handed = tree[DECODER], []
        return brook

    @property
    def tree(self) -> dict[str, Any]:
        return {**super().tree, DECODER: list(self.decoder)}

    def step(self, inputs: tuple[str, ...]) -> str:
        picture = super().step(inputs)
        latents = self.window[-1].tobytes()
        self.handed.append((self.block - 1, latents))
        decode(self.decoder, latents)
        return hashlib.sha256(picture.encode() + b"".join(each.tobytes() for each in self.decoder)).hexdigest()

    def bytes_of(self) -> dict[str, object]:
        told = super().bytes_of()
        return told | {DECODER: [(each.dtype.str, each.shape, each.tobytes()) for each in self.decoder]}


def decode(features: list[NDArray[np.float32]], latents: bytes) -> None:
    """Draw, for the sake of what is remembered."""
    with np.errstate(all="ignore"):  # damage that got in may be no number
        seen = np.frombuffer(latents, dtype=np.float32)
        features[0][:] = np.float32(0.5) * features[0] + seen
        features[1] = features[1] * np.float32(0.25) + features[0]


def follow(part: dict[str, Any], handed: bytes) -> None:
    """Step the decoder alone."""
    if len(handed) != HANDED_BYTES:
        raise StateRefused("", f"a block has {HANDED_BYTES} bytes of latents, and not {len(handed)}")
    decode(part[DECODER], handed)


def install(manifest: Manifest, placement: Placement, arena: Arena) -> Brook:
    """Make a session over what landed in an arena."""
    tree = materialise(manifest, placement, arena, {})
    with engine_asked("install"):
        return Brook.of(tree)


WORLD = World(first=Brook, install=install, followed=(DECODER,))  # type: ignore[arg-type]
