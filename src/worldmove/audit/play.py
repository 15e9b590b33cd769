"""One play: what the player of an audit does, the same in every run, and the calls of the engine that plays it.

Rules of this file:

1. Two boundaries. At the *busy* one more changes wait than a block can use, and keys are held; at the *calm* one
   nothing waits any more. A leaf that is not missed at one of them is missed at the other.
2. Both lie behind all that came before, so windows have rolled and generators are mid-use.
3. Whatever a foreign engine raises is one sentence of ours.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from worldmove.audit.findings import BUSY, CALM
from worldmove.audit.moments import moment_of
from worldmove.audit.names import NUM_THREADS, find_engine
from worldmove.audit.trail import Moment
from worldmove.engine.base import Block, Engine, KeyChange
from worldmove.engine.raised import is_a_persons, said
from worldmove.errors import UserError, WorldMoveError
from worldmove.state.capture import Capture, capture

SEED = 20_071_022
CALM_BLOCKS = 4
"""Blocks without a change, from the busy boundary to the calm one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The closed list of each block; and of each boundary its own number and that of its continuation's end."""

    lists: Sequence[Sequence[KeyChange]]
    spans: Mapping[str, tuple[int, int]]


def write_script(keys: Sequence[str], *, before: int, blocks: int, frames_per_block: int) -> Script:
    """Write the inputs: ``before`` blocks to the busy boundary, ``blocks`` beyond it, half of them beyond the calm."""
    hand = _Hand(keys=keys, dice=random.Random(SEED), down=[])
    lists = [hand.some() for _ in range(before - 1)]
    lists.append(hand.burst(2 * frames_per_block + 2))
    lists += [[] for _ in range(CALM_BLOCKS + 1)]  # one more, in which no new change hides what the last one left
    lists += [hand.some() for _ in range(blocks)]
    calm = before + CALM_BLOCKS
    return Script(lists=lists, spans={BUSY: (before, before + blocks), CALM: (calm, calm + (blocks + 1) // 2)})


@dataclass(slots=True, kw_only=True)
class _Hand:
    keys: Sequence[str]
    dice: random.Random
    down: list[str]
    number: int = 0

    def some(self) -> list[KeyChange]:
        """None to three changes of different keys."""
        return [
            self._change(key) for key in self.dice.sample(self.keys, k=min(len(self.keys), self.dice.randint(0, 3)))
        ]

    def burst(self, num_changes: int) -> list[KeyChange]:
        """Many changes in a row: every key let go, then pressed, again and again."""
        if not self.keys:
            return []
        released = [self._change(key) for key in list(self.down)]
        presses = [self.keys[i % len(self.keys)] for i in range(num_changes)]
        return released + [self._change(key) for key in presses]

    def _change(self, key: str) -> KeyChange:
        self.number += 1
        is_down = key not in self.down
        if is_down:
            self.down.append(key)
        else:
            self.down.remove(key)
        return KeyChange(number=self.number, key=key, down=is_down)


def ready(name: str) -> Engine[Any]:
    """Make the engine and warm it up."""
    torch.set_num_threads(NUM_THREADS)
    engine = find_engine(name)
    with asked("warm up"):
        engine.warm_up()
    return engine


def opened(engine: Engine[Any]) -> Any:
    """Begin the world that an audit plays."""
    with asked("open a session"):
        return engine.open(SEED)


def stepped(engine: Engine[Any], session: Any, changes: Sequence[KeyChange], number: int) -> Block:
    with asked(f"step block {number}"):
        return engine.step(session, changes)


def state_of(engine: Engine[Any], session: Any) -> Capture:
    """Resolve a session's state at a boundary. Raises StateRefused."""
    with asked("give away its state"):
        engine.quiesce(session)
        state = engine.state(session)
    return capture(state, engine.state_types)


def installed(engine: Engine[Any], tree: Any) -> Any:
    with asked("install a state"):
        return engine.install(tree)


def script_for(engine: Engine[Any], *, before: int, blocks: int) -> Script:
    spec = engine.spec
    return write_script(spec.keys, before=before, blocks=blocks, frames_per_block=spec.frames_per_block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """One session, stepped by the script from a boundary on."""

    engine: Engine[Any]
    session: Any
    script: Script

    def blocks(self, start: int, stop: int) -> Iterator[Moment]:
        """Step the blocks of a span; yield each one's moment."""
        for index in range(start, stop):
            block = stepped(self.engine, self.session, self.script.lists[index], index)
            yield moment_of(block, state_of(self.engine, self.session))

    def now(self) -> Moment:
        """The moment before any step."""
        return moment_of(None, state_of(self.engine, self.session))


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Call a foreign engine: whatever it raises is one sentence of ours."""
    try:
        yield
    except WorldMoveError:
        raise
    except BaseException as error:
        if is_a_persons(error):
            raise
        raise UserError(f"The engine could not {what}: {said(error)}.", code="engine_failed") from error
