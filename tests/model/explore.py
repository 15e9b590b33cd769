"""Breadth-first through every state within some bounds, each visited once; then back from the good ends."""

import gc
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.model.bounds import Bounds
from tests.model.invariants import Broken
from tests.model.rules import SHIPPED, Rules
from tests.model.world import State, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What an exploration found."""

    num_states: int
    num_steps: int
    """Steps without a fault that lead from one state to another."""
    num_bad: int
    """Steps that break something and lead to where nothing is expanded."""
    num_stuck: int
    """States from which, without a further fault, the owner never plays on and lost is never said."""
    broken: dict[Broken, int] = field(default_factory=dict)
    traces: dict[Broken, tuple[State, ...]] = field(default_factory=dict)
    stuck_trace: tuple[State, ...] = ()


class Exploration:
    """One world's states by number, in the order of their finding."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._parents = array("i")
        self._from = array("i")
        self._to = array("i")
        self._broken: dict[Broken, int] = {}
        self._first_broken: dict[Broken, int] = {}

    def run(self, *, start: State | None = None, until: frozenset[Broken] | None = None) -> Explored:
        """Visit every state; or stop as soon as all of ``until`` were seen broken."""
        self._add(self.world.first() if start is None else start, -1)
        number = 0
        while number < len(self._states):
            self._expand(number)
            if until is not None and until <= self._broken.keys():
                return self._explored(stuck=np.zeros(0, dtype=np.int64))
            number += 1
        return self._explored(stuck=self._stuck())

    @property
    def states(self) -> Sequence[State]:
        """Every state that was visited, in order."""
        return self._states

    def _add(self, state: State, parent: int) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            self._parents.append(parent)
        return number

    def _expand(self, number: int) -> None:
        state = self._states[number]
        for is_fault, after, broken in self.world.steps(state):
            if broken is not None:
                self._broken[broken] = self._broken.get(broken, 0) + 1
                self._first_broken.setdefault(broken, number)
            elif after is not None and after != state:
                there = self._add(after, number)
                if not is_fault:
                    self._from.append(number)
                    self._to.append(there)

    def _stuck(self) -> np.ndarray:
        """Return the states from which no good end can be reached."""
        count = len(self._states)
        good = np.fromiter((self.world.is_good(state) for state in self._states), dtype=bool, count=count)
        sources, targets = np.asarray(self._from, dtype=np.int64), np.asarray(self._to, dtype=np.int64)
        while True:
            more = good[targets] & ~good[sources]
            if not more.any():
                return np.flatnonzero(~good)
            good[sources[more]] = True

    def _explored(self, *, stuck: np.ndarray) -> Explored:
        return Explored(
            num_states=len(self._states),
            num_steps=len(self._from),
            num_bad=sum(self._broken.values()),
            num_stuck=len(stuck),
            broken=dict(self._broken),
            traces={broken: self._trace(number) for broken, number in self._first_broken.items()},
            stuck_trace=self._trace(int(stuck[0])) if len(stuck) else (),
        )

    def _trace(self, number: int) -> tuple[State, ...]:
        path = []
        while number >= 0:
            path.append(self._states[number])
            number = self._parents[number]
        return tuple(reversed(path))


def explore(
    bounds: Bounds,
    rules: Rules = SHIPPED,
    *,
    until: frozenset[Broken] | None = None,
    start: Callable[[World], State] | None = None,
) -> Explored:
    """Explore one world, from its beginning or another start.

    The collector rests meanwhile: states are many, and none refers to another.
    """
    gc.disable()
    try:
        world = World(bounds, rules)
        return Exploration(world).run(start=None if start is None else start(world), until=until)
    finally:
        gc.enable()
