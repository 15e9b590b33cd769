"""The same exploration by several processes: for bounds whose states one process would count for too long.

Rules:

1. Each state is kept by one process, which its row, plans, luck and ends name, whatever is in flight. What is kept
   are the states themselves, no fingerprints of them: two that differ are never taken for one.
2. A number means something in its own process only. So a batch begins with the values that its receiver has not had.
3. The processes are forked from one: equal values hash alike in all of them, and so name one keeper.
4. All go on together: a level is expanded by all, then its steps are taken in by all.

Only counts come out. Where something is broken or stuck, ``explore`` of smaller bounds has the path to it.
"""

import gc
import multiprocessing
import multiprocessing.connection
from array import array
from collections.abc import Iterator
from multiprocessing.queues import Queue
from typing import Any

import numpy as np

from tests.model.book import Numbered
from tests.model.bounds import Bounds
from tests.model.explore import Explored
from tests.model.invariants import Broken
from tests.model.rules import SHIPPED, Rules
from tests.model.values import Values
from tests.model.world import State, World

NOBODY = -1
Step = tuple[int, ...]
"""The number of the state that it leads from (NOBODY: by a fault), and the state that it leads to."""
Batch = tuple[int, int, Any]
"""Which round, from whom, and what."""


class Part:
    """One process's share of the states."""

    def __init__(self, world: World, me: int, inboxes: "list[Queue[Batch]]") -> None:
        self._world = world
        self._me = me
        self._inboxes = inboxes
        self._values = Values(world)
        self._round = 0
        self._early: list[Batch] = []
        self._states: Numbered[State] = Numbered()
        self._broken: dict[Broken, int] = {}
        self._targets = array("i")
        self._owners = array("b")
        self._sources = array("i")

    def run(self) -> tuple[int, int, dict[Broken, int], int]:
        """Explore together with the others. Returns this share's states, steps, breaches and stuck states."""
        first = self._world.first()
        if self._keeper(first) == self._me:
            self._states.of(first)
        expanded = 0
        while any(self._swap([len(self._states) - expanded] * len(self._inboxes))):
            level = range(expanded, len(self._states))
            expanded = len(self._states)
            self._take_in(self._swap(self._expand(level)))
        return len(self._states), len(self._targets), self._broken, self._num_stuck()

    def _keeper(self, state: State) -> int:
        return hash(self._values.hashes(state)) % len(self._inboxes)

    def _swap(self, given: list[Any]) -> list[Any]:
        """Give each process its part, and return what each has for this one, in their order."""
        for other, inbox in enumerate(self._inboxes):
            if other != self._me:
                inbox.put((self._round, self._me, given[other]))
        taken = {self._me: given[self._me]}
        waiting, self._early = self._early, []
        while len(taken) < len(self._inboxes):
            batch = waiting.pop() if waiting else self._inboxes[self._me].get()
            if batch[0] == self._round:
                taken[batch[1]] = batch[2]
            else:
                self._early.append(batch)
        self._early += waiting
        self._round += 1
        return [taken[other] for other in range(len(self._inboxes))]

    def _expand(self, level: range) -> list[Any]:
        """Return, for each process, the steps that lead to its states, and what it needs to understand them."""
        steps: list[list[Step]] = [[] for _ in self._inboxes]
        for number in level:
            state = self._states.values[number]
            for is_fault, after, broken in self._world.steps(state):
                if broken is not None:
                    self._broken[broken] = self._broken.get(broken, 0) + 1
                elif after is not None and after != state:
                    steps[self._keeper(after)].append((NOBODY if is_fault else number, *after))
        return [(self._values.news(other) if other != self._me else (), found) for other, found in enumerate(steps)]

    def _take_in(self, given: list[Any]) -> None:
        for other, (news, steps) in enumerate(given):
            if other != self._me:
                self._values.learn(other, news)
            for source, *after in steps:
                state = tuple(after) if other == self._me else self._values.translated(other, after)
                number = self._states.of(state)
                if source != NOBODY:
                    self._targets.append(number)
                    self._owners.append(other)
                    self._sources.append(source)

    def _num_stuck(self) -> int:
        """Count the states from which no good end can be reached: back along the steps, together with the others."""
        count = len(self._states)
        good = np.fromiter((self._world.is_good(state) for state in self._states.values), dtype=bool, count=count)
        targets, sources = np.asarray(self._targets, dtype=np.int64), np.asarray(self._sources, dtype=np.int64)
        owners = np.asarray(self._owners, dtype=np.int8)
        fresh = good.copy()
        while any(self._swap([bool(fresh.any())] * len(self._inboxes))):
            reached = fresh[targets]
            told = [np.unique(sources[reached & (owners == other)]) for other in range(len(self._inboxes))]
            fresh = np.zeros(count, dtype=bool)
            for numbers in self._swap(told):
                fresh[numbers] = True
            fresh &= ~good
            good |= fresh
        return int(count - good.sum())


def explore_together(bounds: Bounds, rules: Rules = SHIPPED, *, num_processes: int) -> Explored:
    """Explore a world from its beginning, and return what ``explore`` would count."""
    context = multiprocessing.get_context("fork")
    inboxes: list[Queue[Batch]] = [context.Queue() for _ in range(num_processes)]
    results: Queue[Any] = context.Queue()
    gc.disable()  # states are many, and none refers to another
    try:
        parts = [
            context.Process(target=_run, args=(bounds, rules, me, inboxes, results)) for me in range(num_processes)
        ]
        for part in parts:
            part.start()
        found = list(_each(results, parts))
    finally:
        gc.enable()
        for part in parts:
            part.kill()
            part.join()
    broken: dict[Broken, int] = {}
    for _, _, some, _ in found:
        for what, number in some.items():
            broken[what] = broken.get(what, 0) + number
    num_states, num_steps, num_stuck = (sum(share[place] for share in found) for place in (0, 1, 3))
    return Explored(
        num_states=num_states,
        num_steps=num_steps,
        num_bad=sum(broken.values()),
        num_stuck=num_stuck,
        broken=broken,
    )


def _run(bounds: Bounds, rules: Rules, me: int, inboxes: "list[Queue[Batch]]", results: "Queue[Any]") -> None:
    results.put(Part(World(bounds, rules), me, inboxes).run())


def _each(results: "Queue[Any]", parts: list[Any]) -> Iterator[Any]:
    """Return each process's result; raises RuntimeError where one has died, since the others would wait for ever."""
    waited = 0
    while waited < len(parts):
        if not results.empty():
            waited += 1
            yield results.get()
            continue
        dead = [part.exitcode for part in parts if part.exitcode]
        if dead:
            raise RuntimeError(f"a process of the exploration ended with {dead[0]}")
        multiprocessing.connection.wait([part.sentinel for part in parts if part.is_alive()], timeout=0.2)
