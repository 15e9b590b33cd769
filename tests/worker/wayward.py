"""Engines that raise an interrupt, or make what is not theirs, before there is a worker; and one that is slow."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, EngineSpec, KeyChange

WARMING = "it is warming up"


def interrupts(_num_threads: int) -> CountingEngine:
    raise KeyboardInterrupt


class Specless(CountingEngine):
    @property
    def spec(self) -> EngineSpec:
        raise KeyboardInterrupt


class Cold(CountingEngine):
    def warm_up(self) -> None:
        raise KeyboardInterrupt


class Shapeless(CountingEngine):
    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        return replace(super().step(session, changes), frames=np.zeros((2, 2, 3, 3), np.uint8))


class Slow(CountingEngine):
    def warm_up(self) -> None:
        print(WARMING, file=sys.stderr, flush=True)  # noqa: T201
        time.sleep(1.0)
