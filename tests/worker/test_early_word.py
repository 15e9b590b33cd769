"""What an engine says of its leaves, in a step and after it: heard where somebody wants to know."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.worker.bench_worker import bench
from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, KeyChange, Rolled
from worldmove.worker.freezing import rolled_in
from worldmove.worker.messages import Open
from worldmove.worker.source_copy import SourceOfMove


class TellingEngine(CountingEngine):
    """It says of each block that its numbers are final."""

    def __init__(self) -> None:
        super().__init__()
        self.said: Any = {"numbers": Rolled(axis=0, block=1)}

    def step_streaming(self, session: World, changes: Sequence[KeyChange], final: Callable[[str], None]) -> Block:
        block = self.step(session, changes)
        final("numbers")
        final(f"block {session.block}")
        return block

    def rolled(self, session: World) -> Mapping[str, Rolled]:
        said: Mapping[str, Rolled] = self.said() if callable(self.said) else self.said
        return said


def test_an_engine_is_asked_from_the_first_question_until_it_is_hushed_and_nothing_is_lost_in_between() -> None:
    async def run() -> None:
        trial = bench(TellingEngine())
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        trial.inputs(0)
        await trial.settle()
        assert source.finals() == ()
        trial.inputs(1, 2)
        await trial.settle()
        assert source.finals() == ("numbers", "block 2", "numbers", "block 3")
        assert source.finals() == ()
        source.hush()
        trial.inputs(3)
        await trial.settle()
        assert source.finals() == ()
        assert trial.blocks() == [0, 1, 2, 3]

    asyncio.run(run())


def test_an_engine_that_says_nothing_steps_as_ever() -> None:
    async def run() -> None:
        trial = bench(CountingEngine())
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        assert source.finals() == ()
        trial.inputs(0, 1)
        await trial.settle()
        assert source.finals() == ()
        assert trial.blocks() == [0, 1]

    asyncio.run(run())


def test_of_what_an_engine_says_of_its_rolling_a_message_has_what_it_can_say() -> None:
    engine = TellingEngine()
    world = engine.open(1)
    assert rolled_in(engine, world) == {"numbers": (0, 1, 0)}
    assert rolled_in(CountingEngine(), world) == {}
    by = Rolled(axis=0, block=1)
    engine.said = {
        "a": by,
        "\ud800": by,
        "x" * 3000: by,
        3: by,
        "b": Rolled(axis=-1, block=1),
        "c": Rolled(axis=0, block=1 << 62),
    }
    assert rolled_in(engine, world) == {"a": (0, 1, 0)}


def test_an_engine_that_raises_when_it_is_asked_what_it_rolled_has_said_nothing() -> None:
    engine = TellingEngine()

    def raises() -> Mapping[str, Rolled]:
        raise RuntimeError("it does not know")

    engine.said = raises
    assert rolled_in(engine, engine.open(1)) == {}
