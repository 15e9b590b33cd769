"""Playing blocks, with a sentence for each thing that an engine can fail at."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from worldmove.audit.moments import moment_of
from worldmove.audit.names import NUM_THREADS, find_engine, said
from worldmove.audit.script import Script, write_script
from worldmove.audit.trail import Moment
from worldmove.engine.base import Block, Engine, KeyChange
from worldmove.errors import UserError, WorldMoveError
from worldmove.state.capture import Capture, capture

SEED = 20_071_022


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
    except Exception as error:
        raise UserError(f"The engine could not {what}: {said(error)}.", code="engine_failed") from error
