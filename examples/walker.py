"""A minimal engine of one's own: a light that walks over a dark field and leaves a fading trail. Numpy, no model.

In this folder, ``worldmove audit walker:engine`` audits it. ``worldmove serve --engine python:walker:make`` plays it
where this folder is on Python's path.
``forgetful`` is the same engine with one line of its state left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange, Tree
from worldmove.errors import StateRefused

SIZE = 32
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
TRAIL = 12
"""Places that the light remembers: a ring, in which ``next`` is the oldest."""


@dataclass(slots=True, kw_only=True)
class Walk:
    """One world."""

    trail: NDArray[np.int64]
    dice: np.random.Generator
    next: int = 0
    block: int = 0
    pose: tuple[int, int] = (0, 0)
    held: list[str] = field(default_factory=list)
    number: int = 0


class Walker:
    """The engine. It keeps nothing of a session outside the session."""

    def __init__(self) -> None:
        self.spec = EngineSpec(
            name="walker",
            preset="field",
            weights_sha256="0" * 64,
            height=SIZE,
            width=SIZE,
            frames_per_block=2,
            frames_per_s=8.0,
            keys=tuple(STEPS),
            num_threads=1,
        )
        self.state_types: Mapping[str, type] = {}

    def warm_up(self) -> None:
        self.step(self.open(0), ())

    def open(self, seed: int) -> Walk:
        return Walk(trail=np.zeros((TRAIL, 2), dtype=np.int64), dice=np.random.default_rng(seed))

    def step(self, session: Walk, changes: Sequence[KeyChange]) -> Block:
        for change in changes:
            session.number = change.number
            # It may be released though it is not down.
            session.held = [key for key in session.held if key != change.key]
            session.held += [change.key] if change.down else []
        index, session.block = session.block, session.block + 1
        shown = [self._frame(session) for _ in range(self.spec.frames_per_block)]
        return Block(
            index=index, frames=np.stack([frame for frame, _ in shown]), notes=tuple(note for _, note in shown)
        )

    def quiesce(self, session: Walk) -> None:
        """Nothing to wait for."""

    def state(self, session: Walk) -> Tree:
        return {
            "trail": session.trail,
            "next": session.next,
            "dice": session.dice,
            "block": session.block,
            "pose": session.pose,
            "held": list(session.held),
            "number": session.number,
        }

    def install(self, state: Tree, into: Walk | None = None) -> Walk:
        if not isinstance(state, dict) or not {"trail", "dice"} <= state.keys():
            raise StateRefused("", "it is no walk")
        given = Walk(**state)
        if into is None:
            return given
        into.trail[:] = given.trail
        into.dice, into.next, into.block = given.dice, given.next, given.block
        into.pose, into.held, into.number = given.pose, given.held, given.number
        return into

    def _frame(self, session: Walk) -> tuple[NDArray[np.uint8], FrameNote]:
        action = session.held[-1] if session.held else "stay"
        dy, dx = STEPS.get(action, (0, 0))
        session.pose = (session.pose[0] + dy, session.pose[1] + dx)
        session.trail[session.next] = session.pose
        session.next = (session.next + 1) % TRAIL
        frame = session.dice.integers(0, 32, (SIZE, SIZE, 3), dtype=np.uint8)
        for age in range(TRAIL):
            y, x = session.trail[(session.next + age) % TRAIL]
            frame[y % SIZE, x % SIZE] = 40 + 18 * age
        return frame, FrameNote(pose=session.pose, action=action, number=session.number)


class Forgetful(Walker):
    """The same, without one line."""

    def state(self, session: Walk) -> Tree:
        tree = super().state(session)
        del tree["next"]
        return tree


def make(_num_threads: int = 1) -> Walker:
    """The factory that ``serve`` asks for."""
    return Walker()


engine = Walker()
forgetful = Forgetful()
