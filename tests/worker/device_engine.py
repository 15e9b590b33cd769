"""A small engine whose large tensors lie on a device: a GPU, or the double that stands in for one.

It rebinds tensors, shifts a window in place, has views of one storage, small tensors in host memory, and generators of
both kinds. Every later picture depends on all of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange, Tree
from worldmove.errors import StateRefused

ROWS, WIDTH = 64, 1024


@dataclass(slots=True, kw_only=True)
class World:
    """One session."""

    window: torch.Tensor
    """Shifted in place."""
    rebound: torch.Tensor
    """Bound anew in every block, and of another size every third."""
    counts: torch.Tensor
    """In host memory."""
    noise: torch.Generator
    dice: torch.Generator
    late: torch.Tensor | None = None
    block: int = 0
    number: int = 0


class DeviceEngine:
    """``worldmove.engine.base.Engine`` over a device."""

    def __init__(
        self, num_threads: int = 1, *, device: str = "double", rows: int = ROWS, frames_per_s: float = 40.0
    ) -> None:
        self._device = torch.device("cpu" if device == "double" else device)
        self._rows = rows
        self.during_step: Callable[[World], None] = lambda world: None
        self.spec = EngineSpec(
            name="device",
            preset="test",
            weights_sha256="none",
            height=8,
            width=8,
            frames_per_block=2,
            frames_per_s=frames_per_s,
            keys=("up", "down"),
            num_threads=num_threads,
            device=device,
        )
        self.state_types: Mapping[str, type] = {}

    def warm_up(self) -> None:
        self.step(self.open(0), ())

    def open(self, seed: int) -> World:
        noise = torch.Generator(device=self._device).manual_seed(seed)
        return World(
            window=torch.randn(self._rows, WIDTH, generator=noise, device=self._device),
            rebound=torch.randn(WIDTH, generator=noise, device=self._device),
            counts=torch.zeros(3, dtype=torch.int64),
            noise=noise,
            dice=torch.Generator().manual_seed(seed + 1),
        )

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        self.during_step(session)
        drawn = torch.randn(WIDTH, generator=session.noise, device=self._device)
        size = 1 + session.block % 3 // 2
        session.rebound = (drawn + session.rebound[:WIDTH]).repeat(size)
        session.window[:-1] = session.window[1:].clone()
        session.window[-1] = drawn * 0.5 + session.rebound[:WIDTH] * 0.25
        session.counts += torch.randint(9, (3,), generator=session.dice) + len(changes)
        if session.block == 1:
            session.late = session.window[3:5].to(torch.bfloat16)
        session.number = max([session.number, *(change.number for change in changes)])
        index, session.block = session.block, session.block + 1
        picture = session.window.view(torch.uint8)[::7, : 8 * 8 * 3].sum(0, dtype=torch.int64)
        whole = (picture + session.rebound.view(torch.int32).sum() + int(session.counts.sum())).to(torch.uint8)
        frame = whole.cpu().numpy().reshape(1, 8, 8, 3)
        notes = (FrameNote(pose=(index, 0), action="stay", number=session.number),) * 2
        return Block(index=index, frames=np.concatenate((frame, frame)), notes=notes)

    def quiesce(self, session: World) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def state(self, session: World) -> Tree:
        return {
            "window": session.window,
            "tail": session.window[-2:, 100:],
            "rebound": session.rebound,
            "counts": session.counts,
            "noise": session.noise,
            "dice": session.dice,
            "late": session.late,
            "block": session.block,
            "number": session.number,
        }

    def install(self, state: Tree, into: World | None = None) -> World:
        given = {name: value for name, value in state.items() if name != "tail"}
        try:
            made = World(**given)
        except TypeError as error:
            raise StateRefused("", f"it is no state of this engine: {error}") from error
        if into is None:
            return made
        into.window.copy_(made.window)
        into.rebound, into.counts, into.late = made.rebound.clone(), made.counts.clone(), made.late
        into.noise, into.dice, into.block, into.number = made.noise, made.dice, made.block, made.number
        return into


def build(num_threads: int) -> DeviceEngine:
    """On the double: ``python:tests.worker.device_engine:build``."""
    return DeviceEngine(num_threads)


def build_calm(num_threads: int) -> DeviceEngine:
    """The same with 0.4 s for a block: moves in real time are admitted on a busy machine too."""
    return DeviceEngine(num_threads, frames_per_s=5.0)


def build_cuda(num_threads: int) -> DeviceEngine:
    """On a GPU, with 64 MiB a session."""
    return DeviceEngine(num_threads, device="cuda", rows=16384)


def unmoved(engine: DeviceEngine, seed: int, num_blocks: int, lists: Any = None) -> list[bytes]:
    """Return the pictures of a world that never moved."""
    session = engine.open(seed)
    return [engine.step(session, lists(block) if lists else ()).frames.tobytes() for block in range(num_blocks)]
