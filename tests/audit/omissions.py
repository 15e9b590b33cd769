"""Engines that forget a part of their state, each in another way, and correct ones that look suspicious.

Each is the tiny world with one thing more, which decides what is shown: so what is lost in a move is seen.
"""

import collections
import functools
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from tests.audit import counter_module
from worldmove.engine.base import Block, KeyChange, Tree
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import tiny
from worldmove.engine.reference.session import Session
from worldmove.errors import StateRefused
from worldmove.limits import MAX_LIST

SEEN: list[int] = []


@dataclass(slots=True, kw_only=True)
class Larger:
    """The tiny world's session with something beside it."""

    world: Session
    cache: list[dict[str, torch.Tensor]] = field(default_factory=lambda: [{"k": torch.zeros(3)} for _ in range(5)])
    index: int = 0
    dice: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(1))
    late: list[KeyChange] = field(default_factory=list)
    salt: int = 0
    heard: int = 0
    down: list[str] = field(default_factory=list)


class Engine:
    """A correct engine around the tiny world: ``tint`` is added to every picture, and needs only what is exported."""

    def __init__(self) -> None:
        self._tiny = ReferenceEngine(tiny())
        self.spec = self._tiny.spec
        self.state_types = self._tiny.state_types

    def warm_up(self) -> None:
        self._tiny.warm_up()

    def open(self, seed: int) -> Larger:
        return Larger(world=self._tiny.open(seed))

    def step(self, session: Larger, changes: Sequence[KeyChange]) -> Block:
        block = self._tiny.step(session.world, self.heard(session, changes))
        return replace(block, frames=block.frames + np.uint8(self.tint(session, block) % 256))

    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        return changes

    def tint(self, session: Larger, block: Block) -> int:
        return 0

    def quiesce(self, session: Larger) -> None:
        pass

    def state(self, session: Larger) -> Tree:
        return self._tiny.state(session.world)

    def install(self, state: Tree, into: Larger | None = None) -> Larger:
        return Larger(world=self._tiny.install(state))


class Cache(Engine):
    """A cache beside the caches: the fourth entry's rows are forgotten."""

    def tint(self, session: Larger, block: Block) -> int:
        rows = session.cache[3]["k"]
        rows[block.index % 3] += 1
        return int(rows.sum())


class Index(Engine):
    """Where in a ring the next block goes."""

    def tint(self, session: Larger, block: Block) -> int:
        session.index = (session.index + 2) % 7
        return session.index


class Generator(Engine):
    def tint(self, session: Larger, block: Block) -> int:
        return int(torch.randint(256, (1,), generator=session.dice))


class WaitingInputs(Engine):
    """Key changes are used one block late."""

    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        late, session.late = session.late, list(changes)
        return late


class ModuleCounter(Engine):
    """A counter on another module of the same package."""

    def tint(self, session: Larger, block: Block) -> int:
        counter_module.blocks += 1
        return counter_module.blocks


class Closure(Engine):
    """A list that only a function's closure holds."""

    def __init__(self) -> None:
        super().__init__()
        self.count = counting()

    def tint(self, session: Larger, block: Block) -> int:
        return self.count(block.index)


def counting() -> Callable[[int], int]:
    seen: list[int] = []

    def f(index: int) -> int:
        seen.append(index)
        return len(seen)

    return f


class ModuleGlobal(Engine):
    def tint(self, session: Larger, block: Block) -> int:
        SEEN.append(block.index)
        return len(SEEN)


class ProcessGenerator(Engine):
    """It draws from the generator that all sessions of a process share."""

    def tint(self, session: Larger, block: Block) -> int:
        return int(torch.randint(256, (1,)))


class ClassAttribute(Engine):
    total = 0

    def tint(self, session: Larger, block: Block) -> int:
        ClassAttribute.total += 1
        return ClassAttribute.total


class ByName(Engine):
    """Kept by the engine, by the session's own address."""

    def __init__(self) -> None:
        super().__init__()
        self._moods: dict[int, int] = {}

    def tint(self, session: Larger, block: Block) -> int:
        self._moods[id(session)] = self._moods.get(id(session), 0) + 3
        return self._moods[id(session)]


class DefaultArgument(Engine):
    def tint(self, session: Larger, block: Block) -> int:
        return remembering(block.index)


def remembering(index: int, memory: list[int] = []) -> int:  # noqa: B006  (the mistake that is to be found)
    memory.append(index)
    return len(memory)


class Suspended(Engine):
    """The local variable of a generator function that waits for the next block."""

    def __init__(self) -> None:
        super().__init__()
        self._tints = tints()

    def tint(self, session: Larger, block: Block) -> int:
        return next(self._tints)


def tints() -> Iterator[int]:
    level = 0
    while True:
        level += 5
        yield level


class OpenedOnce(Engine):
    """Drawn when the world begins, never changed, and not exported."""

    def open(self, seed: int) -> Larger:
        return Larger(world=self._tiny.open(seed), salt=random.Random(seed).randint(1, 200))

    def tint(self, session: Larger, block: Block) -> int:
        return session.salt


class Suspicious(Engine):
    """Correct: a scratch buffer, a memo, a table made at the first block, a time of start, the last block."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = np.zeros(4)
        self.table: torch.Tensor | None = None
        self.started_at = time.time()
        self.last: collections.deque[Block] = collections.deque(maxlen=1)

    def tint(self, session: Larger, block: Block) -> int:
        self.scratch[:] = block.index
        self.last.append(block)
        if self.table is None:
            self.table = torch.arange(256)
        return int(self.table[int(self.scratch.sum()) % 256]) + squared(block.index)


@functools.lru_cache(maxsize=8)
def squared(number: int) -> int:
    return number * number


class LateEffect(Suspicious):
    """Suspicious, and with two counters of which nothing is seen for 1,000 blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0
        self.statistics = 0

    def tint(self, session: Larger, block: Block) -> int:
        self.blocks += 1
        self.statistics += 1
        return super().tint(session, block) + int(self.blocks > 1000)


class Restless(Engine):
    """It is not deterministic at all, and nothing that Python reaches says why."""

    def tint(self, session: Larger, block: Block) -> int:
        return time.perf_counter_ns() % 251


class Refused(Engine):
    def state(self, session: Larger) -> Tree:
        return {**self._tiny.state(session.world), "late": {1, 2}}


class Broken(Engine):
    def tint(self, session: Larger, block: Block) -> int:
        return 1 // (block.index - 3)


def needs_more(preset: Any, num_threads: int) -> Engine:
    raise AssertionError((preset, num_threads))


correct = Engine()
no_engine = object()


class Leaves(Engine):
    """Correct: with leaves of every kind beside the world."""

    def open(self, seed: int) -> Larger:
        return Larger(world=self._tiny.open(seed), salt=seed)

    def tint(self, session: Larger, block: Block) -> int:
        session.index += 1
        return session.index

    def state(self, session: Larger) -> Tree:
        world = self._tiny.state(session.world)
        seen = {"index": session.index, "blocks_times_two": 2 * session.index, "seed": session.salt}
        return {"world": world, **seen, "statistics": session.heard, "refused_at_zero": session.index + 1}

    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        session.heard += len(changes)
        return changes

    def install(self, state: Tree, into: Larger | None = None) -> Larger:
        if state["refused_at_zero"] == 1:
            raise StateRefused("refused_at_zero", "it is that of a new session")
        kept = {"index": state["index"], "salt": state["seed"], "heard": state["statistics"]}
        return Larger(world=self._tiny.install(state["world"]), **kept)


class Dies(Engine):
    def warm_up(self) -> None:
        os._exit(7)


class Exits(Engine):
    """Calls sys.exit in the middle of a block, as a script would."""

    def tint(self, session: Larger, block: Block) -> int:
        if block.index == 3:
            sys.exit("no more frames")
        return block.index


class ExitsWhenMade(Engine):
    def __init__(self) -> None:
        raise SystemExit(0)


class DiesWithSuccess(Engine):
    """Ends its process without a word, and with success."""

    def warm_up(self) -> None:
        os._exit(0)


class Interrupts(Engine):
    def warm_up(self) -> None:
        raise KeyboardInterrupt


def raises() -> Engine:
    raise KeyError("weights")


def threaded(num_threads: int) -> Engine:
    assert num_threads == 1
    return Engine()


class Hangs(Engine):
    def tint(self, session: Larger, block: Block) -> int:
        while True:
            time.sleep(1)


class HangsRestored(Engine):
    def install(self, state: Tree, into: Larger | None = None) -> Larger:
        while True:
            time.sleep(1)


class Careful(Engine):
    """A correct engine of many keys, with those that are down in its state. It takes every list."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = replace(self.spec, keys=(*self.spec.keys, *(f"extra {n}" for n in range(70))))

    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        for change in changes:
            self.hear(session, change)
            session.down = [key for key in session.down if key != change.key] + [change.key] * change.down
            session.heard = change.number
        return [change for change in changes if change.key in self._tiny.spec.keys]

    def hear(self, session: Larger, change: KeyChange) -> None:
        """Look at a change before it is taken."""

    def state(self, session: Larger) -> Tree:
        return {"world": self._tiny.state(session.world), "down": list(session.down), "heard": session.heard}

    def install(self, state: Tree, into: Larger | None = None) -> Larger:
        return Larger(world=self._tiny.install(state["world"]), down=state["down"], heard=state["heard"])


class NoStrayRelease(Careful):
    def hear(self, session: Larger, change: KeyChange) -> None:
        if not change.down:
            session.down.remove(change.key)


class NoSecondPress(Careful):
    def hear(self, session: Larger, change: KeyChange) -> None:
        if change.down and change.key in session.down:
            raise KeyError(change.key)


class NoEmptyBeginning(Careful):
    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        if not session.heard:
            min(change.number for change in changes)
        return super().heard(session, changes)


class FewFingers(Careful):
    def hear(self, session: Larger, change: KeyChange) -> None:
        if len(session.down) == len(self.spec.keys) - 1 and change.down:
            raise IndexError(change.key)


class NoTap(Careful):
    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        pressed = []
        for change in changes:
            if not change.down and change.key in pressed:
                raise NotImplementedError(change.key)
            pressed += [change.key] if change.down else []
        return super().heard(session, changes)


class ShortLists(Careful):
    def heard(self, session: Larger, changes: Sequence[KeyChange]) -> Sequence[KeyChange]:
        if len(changes) == MAX_LIST:
            os._exit(3)
        return super().heard(session, changes)


class RisingNumbers(Careful):
    def hear(self, session: Larger, change: KeyChange) -> None:
        if change.number <= session.heard:
            raise IndexError(change.number)


class SmallNumbers(Careful):
    def hear(self, session: Larger, change: KeyChange) -> None:
        torch.tensor([change.number], dtype=torch.int32)


class UncarriedWhenFull(Careful):
    """It takes every list, and its state cannot be carried while all keys are down."""

    def state(self, session: Larger) -> Tree:
        is_full = len(session.down) == len(self.spec.keys)
        return {**super().state(session), "down": {*session.down} if is_full else list(session.down)}


class EveryOmission(
    Cache,
    Index,
    Generator,
    WaitingInputs,
    ModuleCounter,
    Closure,
    ModuleGlobal,
    ProcessGenerator,
    ClassAttribute,
    ByName,
    DefaultArgument,
    Suspended,
    OpenedOnce,
):
    """All ways to forget at once."""

    def tint(self, session: Larger, block: Block) -> int:
        return sum(kind.tint(self, session, block) for kind in EveryOmission.__bases__)  # type: ignore[attr-defined]
