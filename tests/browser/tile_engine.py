"""The procedural tile world as an engine: a real server can be watched in a browser without the time of a model.

Run with ``--engine python:tests.browser.tile_engine:build``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.browser.fake_world import KEYS, FakeWorld, Pixels
from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange, Tree
from worldmove.errors import StateRefused

SIDE_PX = 64
MEMORY_WORDS = 1 << 17


@dataclass(slots=True, kw_only=True)
class TileSession:
    """One world, and some memory that each block writes to: it makes a move worth checking."""

    world: FakeWorld
    block: int
    memory: NDArray[np.int64]
    picture: Pixels
    """What a recovered world began with; black where there was none."""


class TileEngine:
    """``worldmove.engine.base.Engine`` and ``Recovers`` over a procedural world."""

    memory_blocks = 23

    def __init__(self, num_threads: int) -> None:
        self.spec = EngineSpec(
            name="tiles",
            preset="procedural",
            weights_sha256="00" * 32,
            height=SIDE_PX,
            width=SIDE_PX,
            frames_per_block=2,
            frames_per_s=8.0,
            keys=KEYS,
            num_threads=num_threads,
        )
        self.state_types: Mapping[str, type] = {}

    def warm_up(self) -> None:
        self.step(self.open(0), ())

    def open(self, seed: int) -> TileSession:
        return TileSession(
            world=FakeWorld(seed=seed),
            block=0,
            memory=np.zeros(MEMORY_WORDS, np.int64),
            picture=np.zeros((SIDE_PX, SIDE_PX, 3), np.uint8),
        )

    def recover(self, frame: NDArray[np.uint8], seed: int) -> TileSession:
        session = self.open(seed)
        session.picture[:] = frame
        session.world.remember(session.picture)
        return session

    def step(self, session: TileSession, changes: Sequence[KeyChange]) -> Block:
        made = session.world.step([(change.number, change.key, change.down) for change in changes])
        session.memory += session.block
        index, session.block = session.block, session.block + 1
        return Block(
            index=index,
            frames=np.stack([view for view, _ in made]),
            notes=tuple(FrameNote(pose=note.pose, action=note.action, number=note.number) for _, note in made),
        )

    def quiesce(self, session: TileSession) -> None:
        """Nothing runs between two steps."""

    def state(self, session: TileSession) -> Tree:
        world = session.world
        return {
            "block": session.block,
            "flags": sorted(world.flags),
            "held": list(world.held),
            "memory": session.memory,
            "number": world.number,
            "picture": session.picture,
            "pose": world.pose,
            "seed": world.seed,
            "waiting": list(world.waiting),
        }

    def install(self, state: Tree, into: TileSession | None = None) -> TileSession:
        try:
            given = adopt(state)
        except (KeyError, TypeError) as error:
            raise StateRefused("", f"it is no state of this engine: {error}") from error
        if into is None:
            return given
        into.memory[:] = given.memory
        into.picture[:] = given.picture
        into.world, into.block = given.world, given.block
        return into


def adopt(state: Tree) -> TileSession:
    """A session whose memory is the tree's."""
    world = FakeWorld(seed=state["seed"])
    if state["picture"].any():
        world.remember(state["picture"])
    world.pose = tuple(state["pose"])
    world.flags = {tuple(place) for place in state["flags"]}
    world.held = list(state["held"])
    world.waiting = [tuple(change) for change in state["waiting"]]
    world.number = state["number"]
    return TileSession(world=world, block=state["block"], memory=state["memory"], picture=state["picture"])


def build(num_threads: int) -> TileEngine:
    return TileEngine(num_threads)
