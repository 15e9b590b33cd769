"""An engine that takes no time: a world of four numbers, a generator, and whatever its keys have added up to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange


@dataclass(slots=True)
class World:
    """A session."""

    numbers: torch.Tensor
    generator: torch.Generator
    block: int = 0
    number: int = 0


class CountingEngine:
    """Every block depends on every leaf and on every key change. ``during_step`` is called inside each step."""

    def __init__(self, num_threads: int = 1, *, rebinds: bool = False) -> None:
        self.during_step: Callable[[World], None] = lambda world: None
        self.steps = 0
        self._rebinds = rebinds
        self._num_threads = num_threads

    @property
    def spec(self) -> EngineSpec:
        return EngineSpec(
            name="counting",
            preset="test",
            weights_sha256="none",
            height=2,
            width=2,
            frames_per_block=2,
            frames_per_s=40.0,
            keys=("up", "down"),
            num_threads=self._num_threads,
        )

    @property
    def state_types(self) -> Mapping[str, type]:
        return {}

    def warm_up(self) -> None: ...

    def open(self, seed: int) -> World:
        return World(numbers=torch.arange(4.0), generator=torch.Generator().manual_seed(seed))

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        self.steps += 1
        self.during_step(session)
        drawn = torch.rand(4, generator=session.generator) + sum(c.number for c in changes)
        if self._rebinds:
            session.numbers = session.numbers + drawn
        else:
            session.numbers += drawn
        session.number = max([session.number, *(c.number for c in changes)])
        frames = session.numbers.numpy().view(np.uint8)[:12].copy()
        block = Block(
            index=session.block,
            frames=np.stack([frames.reshape(2, 2, 3), 255 - frames.reshape(2, 2, 3)]),
            notes=tuple(FrameNote(pose=(session.block, 0), action="stay", number=session.number) for _ in range(2)),
        )
        session.block += 1
        return block

    def quiesce(self, session: World) -> None: ...

    def state(self, session: World) -> dict[str, Any]:
        return {
            "numbers": session.numbers,
            "generator": session.generator,
            "block": session.block,
            "number": session.number,
        }

    def install(self, state: dict[str, Any], into: World | None = None) -> World:
        return World(**state)
