"""An engine's double with the pictures of a large one: waits as long as a device would compute, and draws nothing.

    python -m bench.movable --engine python:bench.picture_double:engine --pictures 2

12 frames of 352 x 640 a block, 8.1 MB, in memory of their own, as they come from a device.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange

SHAPE = (12, 352, 640, 3)
STEP_S = 0.050
NUM_BYTES = 1 << 20


@dataclass(slots=True)
class World:
    """A session."""

    numbers: torch.Tensor
    block: int = 0
    number: int = 0


class PictureDouble:
    """Every block depends on the one before it and on the keys."""

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._drawn = np.random.default_rng(1).integers(0, 256, SHAPE, dtype=np.uint8)

    @property
    def spec(self) -> EngineSpec:
        return EngineSpec(
            name="picture double",
            preset="bench",
            weights_sha256="none",
            height=SHAPE[1],
            width=SHAPE[2],
            frames_per_block=SHAPE[0],
            frames_per_s=25.0,
            keys=("up", "left", "right"),
            num_threads=self._num_threads,
        )

    @property
    def state_types(self) -> Mapping[str, type]:
        return {}

    def warm_up(self) -> None:
        """Nothing is built when it is used first."""

    def open(self, seed: int) -> World:
        return World(numbers=torch.full((NUM_BYTES,), seed % 256, dtype=torch.uint8))

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        time.sleep(STEP_S)
        session.number = max([session.number, *(change.number for change in changes)])
        session.numbers += 1 + session.number % 7
        frames = self._drawn + np.uint8(int(session.numbers[0]))
        note = FrameNote(pose=(session.block, 0), action="stay", number=session.number)
        block = Block(index=session.block, frames=frames, notes=(note,) * SHAPE[0])
        session.block += 1
        return block

    def quiesce(self, session: World) -> None:
        """Nothing is under way between two steps."""

    def state(self, session: World) -> dict[str, Any]:
        return {"numbers": session.numbers, "block": session.block, "number": session.number}

    def install(self, state: dict[str, Any], into: World | None = None) -> World:
        return World(**state)


def engine(num_threads: int) -> PictureDouble:
    """Return one."""
    return PictureDouble(num_threads)
