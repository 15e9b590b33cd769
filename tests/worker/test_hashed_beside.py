"""Pictures that others hash while the engine goes on: the next block does not wait for them, and all else does."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
from numpy.typing import NDArray

from tests.worker.bench_worker import Bench, bench
from worldmove.worker.messages import Acknowledge, BlockDone, CheckDone, Open, StateDone
from worldmove.worker.pictures import Digests, Pictures, taken
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.turns import Turn


class Slow:
    """Digests of each block come when the test says so, or fail."""

    def __init__(self) -> None:
        self.coming: list[asyncio.Future[Digests]] = []
        self.known: list[Digests] = []

    def __call__(self, frames: NDArray[np.uint8]) -> Pictures:
        now = taken(frames)
        self.known.append(now.frame_sha256)
        future: asyncio.Future[Digests] = asyncio.get_running_loop().create_future()
        self.coming.append(future)

        async def hashed() -> Digests:
            return await future

        return Pictures(frames=now.frames, coming=hashed)

    def come(self, *blocks: int) -> None:
        for block in blocks:
            self.coming[block].set_result(self.known[block])


Trial = Callable[[Bench, SessionCopy, Slow], Awaitable[None]]


def played(run: Trial) -> Bench:
    async def main() -> Bench:
        slow = Slow()
        trial = bench(taking=slow)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        await run(trial, copy, slow)
        return trial

    return asyncio.run(main())


def test_a_block_is_computed_while_the_one_before_it_is_hashed_and_none_after_that() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        trial.inputs(0, 1, 2)
        await trial.settle()
        assert (trial.engine.steps, trial.blocks()) == (2, [])
        slow.come(0)
        await trial.settle()
        assert (trial.engine.steps, trial.blocks()) == (3, [0])
        slow.come(2)  # sooner than the one before it
        await trial.settle()
        assert trial.blocks() == [0]
        slow.come(1)
        await trial.settle()
        assert trial.blocks() == [0, 1, 2]
        assert [done.frame_sha256 for done in trial.of(BlockDone)] == slow.known

    played(run)


def test_a_freeze_does_not_wait_for_the_digests_and_what_is_acknowledged_does() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        trial.inputs(0)
        await trial.settle()
        assert (await source.freeze()).block == 1
        left = asyncio.create_task(source.acknowledged(1))
        await trial.settle()
        assert (trial.blocks(), left.done(), copy.left) == ([], False, 0)
        slow.come(0)
        await trial.settle()
        assert (trial.blocks(), left.done()) == ([0], False)
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=0, server_life=1))
        await left

    played(run)


def test_what_was_promised_is_sent_in_the_name_of_the_epoch_that_has_come_meanwhile() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        trial.inputs(0)
        await trial.settle()
        await source.freeze()
        source.thaw(3)
        slow.come(0)
        await trial.settle()
        assert [(done.block, done.epoch) for done in trial.of(BlockDone)] == [(0, 3)]

    played(run)


def test_an_account_comes_after_its_block() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        trial.inputs(0)
        await trial.settle()
        assert trial.of(StateDone) == []
        slow.come(0)
        await trial.settle()
        told = [type(message) for message in trial.sent if isinstance(message, BlockDone | StateDone)]
        assert told[:1] == [BlockDone]

    played(run)


def test_a_check_is_said_with_its_digests_and_not_before_them() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        trial.inputs(0)
        await trial.settle()
        slow.come(0)
        await trial.settle()
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        await source.freeze()
        source.retire("00000001-x")
        trial.worker.take(Acknowledge(session="s-1", epoch=2, block=1, server_life=1))
        trial.inputs(1)
        await trial.rest()
        assert (trial.engine.steps, trial.checks()) == (2, [])
        slow.come(1)
        await trial.settle()
        assert trial.of(CheckDone)[0].frame_sha256 == slow.known[1]

    played(run)


def test_pictures_that_cannot_be_hashed_end_their_session_and_it_waits_for_nothing() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        trial.inputs(0)
        await trial.settle()
        slow.coming[0].set_exception(MemoryError("no page for it"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert [str(error) for error in trial.failures] == ["no page for it"]
        assert copy.phase is CopyPhase.FREEING

    played(run)


def test_a_session_that_is_closed_meanwhile_lets_its_last_block_go() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        trial.inputs(0)
        await trial.settle()
        copy.end()
        await trial.settle()
        assert not copy.is_let_go
        slow.come(0)
        await trial.settle()
        assert copy.is_let_go
        assert trial.blocks() == [0]

    played(run)


def test_whoever_has_the_engine_while_an_earlier_block_is_hashed_finds_the_block_that_the_state_is_before() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        trial.inputs(0, 1)
        await trial.settle()
        assert (trial.engine.steps, trial.blocks()) == (2, [])
        aside = await source.snapshot()
        aside.free()
        frozen = await source.freeze()
        assert (aside.block, frozen.block) == (2, 2)
        left = asyncio.create_task(source.acknowledged(2))
        slow.come(0, 1)
        await trial.settle()
        assert (trial.blocks(), left.done()) == ([0, 1], False)
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=1, server_life=1))
        await left

    played(run)


def test_whoever_has_the_engine_after_a_block_that_is_not_shown_finds_the_right_number_too() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        async def look() -> tuple[int, int]:
            async with trial.worker.tools.turns.take(Turn.OPEN):
                return trial.engine.steps, copy.next_block

        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        await source.freeze()
        source.retire("00000001-x")
        source.replay(2, 1)
        trial.inputs(0)
        await trial.settle()
        looked = asyncio.create_task(look())
        await trial.settle()
        slow.come(0)
        assert await looked == (1, 1)

    played(run)


def test_a_block_that_follows_keeps_the_engine_from_nobody_while_it_is_hashed() -> None:
    async def run(trial: Bench, copy: SessionCopy, slow: Slow) -> None:
        copy.follow(0, "00000001-x")
        copy.stop_before(1)
        trial.inputs(0)
        await trial.settle()
        assert (trial.engine.steps, copy.next_block) == (1, 0)
        async with asyncio.timeout(1.0), trial.worker.tools.turns.take(Turn.OWNER):
            pass
        slow.come(0)
        await trial.settle()
        assert copy.next_block == 1

    played(run)
