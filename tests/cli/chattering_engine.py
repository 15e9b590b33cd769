"""The counting engine, which writes to standard output whenever it is asked for anything, in every way there is."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence

from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, EngineSpec, KeyChange

C = ctypes.CDLL(None)


def chatter(when: str) -> None:
    """Say the same by Python's stream, by the descriptor, by C's stream, and in a process of its own."""
    print("printed", when, flush=True)  # noqa: T201  (as an engine of somebody may)
    os.write(1, f"written {when}\n".encode())
    C.puts(f"put {when}".encode())
    C.fflush(None)
    if when in ("when imported", "when warmed up"):
        subprocess.run([sys.executable, "-Sc", f"print('printed elsewhere {when}')"], check=True)


class ChatteringEngine(CountingEngine):
    """Says what it does."""

    @property
    def spec(self) -> EngineSpec:
        chatter("when described")
        return super().spec

    def warm_up(self) -> None:
        chatter("when warmed up")

    def open(self, seed: int) -> World:
        chatter("when opened")
        return super().open(seed)

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        chatter("at a step")
        return super().step(session, changes)


def engine(num_threads: int = 1) -> ChatteringEngine:
    """Make one."""
    chatter("when made")
    return ChatteringEngine(num_threads)


chatter("when imported")
