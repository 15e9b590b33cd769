"""A toy world with a streaming decoder: a memory that is all new in each block, and a function of little."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import torch

from tests.move.harness import Copy, Fleet, World
from tests.move.rolling import Rolling
from tests.move.toy import TYPES
from worldmove.errors import MoveRefused, StateRefused
from worldmove.state import Manifest
from worldmove.state.arena import Arena
from worldmove.state.capture import capture
from worldmove.state.landing import materialise
from worldmove.state.part import lay, twins
from worldmove.state.placement import Placement

SHAPE = (32, 16)
NUM_FEATURES = 4
FEATURE_BYTES = 4 * SHAPE[0] * SHAPE[1]
DECODER_BYTES = NUM_FEATURES * FEATURE_BYTES
HANDED_BYTES = 4 * SHAPE[1]
DECODER = "decoder"


class Decoded(Rolling):
    """One session. Its first feature is written in place, and the others are bound anew."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.features = [torch.zeros(SHAPE) for _ in range(NUM_FEATURES)]
        self.handed: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, tree: dict[str, Any]) -> "Decoded":
        toy = super().of(tree)
        assert isinstance(toy, Decoded)
        toy.features, toy.handed = tree[DECODER], []
        return toy

    @property
    def tree(self) -> dict[str, Any]:
        return {**super().tree, DECODER: list(self.features)}

    def step(self, inputs: tuple[str, ...]) -> str:
        picture = super().step(inputs)
        latents = self.window[-1].numpy().tobytes()
        self.handed.append((self.block - 1, latents))
        decode(self.features, latents)
        drawn = b"".join(feature.numpy().tobytes() for feature in self.features)
        return hashlib.sha256(picture.encode() + drawn).hexdigest()


def decode(features: list[torch.Tensor], latents: bytes) -> None:
    """Draw, for the sake of what is remembered."""
    seen = torch.frombuffer(bytearray(latents), dtype=torch.float32)
    seen = torch.sin(seen.expand(SHAPE).cumsum(0) + features[0])
    features[0].copy_(seen)
    for number in range(1, NUM_FEATURES):
        seen = torch.sin(seen + 1.5 * features[number] + number)
        features[number] = seen


def follow(part: dict[str, Any], handed: bytes) -> None:
    """Step the decoder alone."""
    if len(handed) != HANDED_BYTES:
        raise StateRefused("", f"a block has {HANDED_BYTES} bytes of latents, and not {len(handed)}")
    decode(part[DECODER], handed)


def install(manifest: Manifest, placement: Placement, arena: Arena) -> Decoded:
    """Make a session over what landed in an arena."""
    return Decoded.of(materialise(manifest, placement, arena, TYPES))


def reference(seed: int, inputs: list[tuple[str, ...]]) -> list[str]:
    """Every picture of a world that never moved."""
    toy = Decoded(seed)
    return [toy.step(block) for block in inputs]


WORLD = World(first=Decoded, install=install, followed=(DECODER,))


class Part:
    """A decoder beside a slot (``move.shadow_slot.ComponentSlot``). ``takes_s``: what a step takes."""

    def __init__(
        self,
        copy: Copy,
        num_bytes: int,
        *,
        step: Callable[[dict[str, Any], bytes], None] = follow,
        takes_s: float = 0.0,
    ) -> None:
        self.arena = Arena(num_bytes, "part")
        self.num_steps = 0
        self.is_freed = False
        self.hurried = False
        self.part: dict[str, Any] = {}
        self._copy = copy
        self._step = step
        self.takes_s = takes_s

    async def install(self, manifest: Manifest, placement: Placement) -> None:
        self.part = materialise(manifest, placement, self.arena, TYPES)

    async def step(self, handed: bytes) -> None:
        await asyncio.sleep(self.takes_s)
        assert not self.is_freed
        self._step(self.part, handed)
        self.num_steps += 1

    def hurry(self) -> None:
        self.hurried = True

    async def lay(self, whole: Manifest, placement: Placement) -> tuple[int, ...]:
        captured = capture(self.part, TYPES)
        pairs = twins(captured.manifest, whole)
        lay(captured, pairs, placement, self._copy.arena)
        return tuple(twin for _, twin in pairs)

    def free(self) -> None:
        self.is_freed = True


def with_parts(fleet: Fleet, **made: Any) -> list[Part]:
    """Let parts be stepped by themselves; return those that will be made."""
    parts: list[Part] = []

    def beside(copy: Copy, num_bytes: int) -> Part:
        parts.append(Part(copy, num_bytes, **made))
        return parts[-1]

    fleet.beside = beside
    return parts


def no_memory(copy: Copy, num_bytes: int) -> Part:
    """There is no room beside the slot."""
    raise MoveRefused("no_memory", f"{num_bytes} bytes are too many")
