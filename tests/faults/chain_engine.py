"""An engine of numpy alone whose picture is a digest of everything that ever happened to its world.

A block takes well under a millisecond. One wrong bit of state, a lost key or a block stepped twice changes every
later picture. Run with ``--engine python:tests.faults.chain_engine:build``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.faults.points import DriftError, reached
from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange, Tree
from worldmove.errors import StateRefused

SIDE_PX = 8
ROWS, WORDS = 64, 512
"""256 KiB of memory, a row of which is rewritten by each block."""
FAIL = "fail"
"""The key at which the engine raises, wherever the block is stepped."""


@dataclass(slots=True, kw_only=True)
class World:
    """One session."""

    chain: NDArray[np.uint8]
    memory: NDArray[np.uint64]
    generator: np.random.Generator
    block: int = 0
    number: int = 0


class ChainEngine:
    """``worldmove.engine.base.Engine`` over a chain of digests."""

    def __init__(self, num_threads: int) -> None:
        self.spec = EngineSpec(
            name="chain",
            preset="digests",
            weights_sha256="00" * 32,
            height=SIDE_PX,
            width=SIDE_PX,
            frames_per_block=1,
            frames_per_s=40.0,
            keys=("up", "down", FAIL),
            num_threads=num_threads,
        )
        self.state_types: Mapping[str, type] = {}

    def warm_up(self) -> None:
        self.step(self.open(0), ())

    def open(self, seed: int) -> World:
        generator = np.random.Generator(np.random.PCG64(seed))
        memory = generator.integers(0, 2**63, size=(ROWS, WORDS), dtype=np.uint64)
        return World(chain=np.zeros(32, np.uint8), memory=memory, generator=generator)

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        if any(change.key == FAIL for change in changes):
            raise RuntimeError("the world has no such place")
        row = session.memory[session.block % ROWS]
        row += session.generator.integers(0, 2**32, size=WORDS, dtype=np.uint64)
        try:
            reached("engine: in mid-step")
        except DriftError:
            row[0] ^= 1
        digest = hashlib.sha256(session.chain.tobytes() + row.tobytes())
        for change in changes:
            digest.update(f"{change.number} {change.key} {change.down};".encode())
            session.number = max(session.number, change.number)
        session.chain[:] = np.frombuffer(digest.digest(), dtype=np.uint8)
        index, session.block = session.block, session.block + 1
        return Block(
            index=index,
            frames=np.resize(session.chain, (1, SIDE_PX, SIDE_PX, 3)),
            notes=(FrameNote(pose=(index, 0), action="stay", number=session.number),),
        )

    def quiesce(self, session: World) -> None:
        """Nothing runs between two steps."""

    def state(self, session: World) -> Tree:
        return {
            "chain": session.chain,
            "memory": session.memory,
            "generator": session.generator,
            "block": session.block,
            "number": session.number,
        }

    def install(self, state: Tree, into: World | None = None) -> World:
        try:
            given = World(**state)
        except TypeError as error:
            raise StateRefused("", f"it is no state of this engine: {error}") from error
        if into is None:
            return given
        into.chain[:], into.memory[:] = given.chain, given.memory
        into.generator, into.block, into.number = given.generator, given.block, given.number
        return into


def build(num_threads: int) -> ChainEngine:
    return ChainEngine(num_threads)


def replayed(seed: int, lists: Sequence[Sequence[KeyChange]]) -> list[str]:
    """Return the SHA-256 of every frame of a world that was never moved and is given the same lists."""
    engine = build(1)
    session = engine.open(seed)
    return [hashlib.sha256(engine.step(session, changes).frames.tobytes()).hexdigest() for changes in lists]
