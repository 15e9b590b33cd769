"""A worker as its server sees it: messages in, messages out."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.worker.bench_worker import Bench, bench
from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, KeyChange
from worldmove.errors import MoveRefused, UserError
from worldmove.limits import MAX_BLOB_BYTES
from worldmove.move.ledger_messages import Yours
from worldmove.move.messages import Gone
from worldmove.state.layout import Layout
from worldmove.worker.messages import (
    Acknowledge,
    Alive,
    Beat,
    BlockDone,
    Close,
    Copies,
    Copy,
    Failed,
    Freed,
    Hello,
    LedgerAnswer,
    LedgerAsk,
    Open,
    Opened,
    Poll,
    Refused,
    Reported,
    SendAgain,
    Shutdown,
    TakeOver,
)
from worldmove.worker.states import digest_of


def opened(run: Callable[[Bench], Awaitable[None]], engine: CountingEngine | None = None, **options: int) -> Bench:
    """Run a trial on a worker that has opened one session."""

    async def main() -> Bench:
        trial = bench(engine, **options)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        await run(trial)
        await trial.settle()
        return trial

    return asyncio.run(main())


def unmoved(num_blocks: int) -> list[tuple[bytes, ...]]:
    """Return the frames' digests of the bare engine, given the same lists as ``Bench.inputs``."""
    engine = CountingEngine()
    session, found = engine.open(5), []
    for block in range(num_blocks):
        changes = [KeyChange(number=block, key="up", down=True) for _ in range(block % 2)]
        frames = engine.step(session, changes).frames
        found.append(tuple(hashlib.sha256(frame.tobytes()).digest() for frame in frames))
    return found


@pytest.mark.parametrize("rebinds", [False, True])
def test_blocks_come_in_order_and_as_the_bare_engine_makes_them(rebinds: bool) -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(2, 0, 1, 1, 4, 3)
        await trial.settle()

    trial = opened(run, CountingEngine(rebinds=rebinds))
    assert trial.blocks() == [0, 1, 2, 3, 4]
    assert [message.frame_sha256 for message in trial.of(BlockDone)] == unmoved(5)


def test_no_block_is_stepped_before_its_list_is_there() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 2)
        await trial.settle()

    assert opened(run).blocks() == [0]


def test_opening_says_what_the_state_is() -> None:
    async def run(trial: Bench) -> None: ...

    trial = opened(run)
    (answer,) = trial.of(Opened)
    engine = CountingEngine()
    assert (answer.session, answer.epoch, answer.num_bytes, answer.num_leaves) == ("s-1", 1, 16, 4)
    assert answer.state_digest == digest_of(engine, engine.open(5))


def test_an_opening_that_fails_leaves_its_slot_free() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Open(session="s-2", epoch=0, seed=1, picture=b"123"))
        await trial.settle()

    trial = opened(run)
    (failed,) = trial.of(Failed)
    assert (failed.session, failed.code) == ("s-2", "cannot_recover")
    assert trial.copies().slots_free == 1


def test_a_full_worker_answers_and_opens_nothing() -> None:
    async def run(trial: Bench) -> None:
        for session in ("s-2", "s-3"):
            trial.worker.take(Open(session=session, epoch=1, seed=1))
        await trial.settle()

    trial = opened(run)
    assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-3", "no_slot")]
    assert [copy.session for copy in trial.copies().copies] == ["s-1", "s-2"]


def test_closing_ends_the_step_in_hand_and_frees_the_slot_once() -> None:
    async def run(trial: Bench) -> None:
        close = Close(session="s-1")
        trial.engine.during_step = lambda world: trial.worker.take(close) if not world.block else None
        trial.inputs(0, 1, 2, 3)
        await trial.settle()

    trial = opened(run)
    assert trial.engine.steps <= 2
    assert trial.of(Freed) == [Freed(session="s-1")]
    assert trial.copies().slots_free == 2


def test_closing_what_is_not_here_is_answered_too() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Close(session="nobody"))
        await trial.settle()

    assert opened(run).of(Freed) == [Freed(session="nobody")]


def test_a_poll_is_answered_with_its_number() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Poll(poll=17))

    (answer,) = [report for report in opened(run).of(Copies) if report.poll]
    assert (answer.poll, [(copy.session, copy.phase, copy.block) for copy in answer.copies]) == (
        17,
        [("s-1", "live", 0)],
    )


def test_an_earlier_servers_acknowledgement_counts_for_nothing() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1)
        await trial.settle()
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=0, server_life=2))
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=1, server_life=1))
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        assert copy.outbox.first_kept(9) == 1

    opened(run)


def test_a_takeover_of_what_is_not_held_is_answered_gone() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(TakeOver(session="elsewhere", epoch=4, block=9))

    gone = opened(run).sent[-1]
    assert (gone.to, gone.session, gone.owned_epoch) == ("controller", "elsewhere", 4)


@pytest.mark.parametrize(("session", "says_gone"), [("elsewhere", True), ("s-1", False)])
def test_a_grant_that_nobody_waits_for_is_answered_gone_unless_there_is_a_copy(
    session: str, *, says_gone: bool
) -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(LedgerAnswer(request=99, answer=Yours(session=session, epoch=4)))

    said = [(gone.to, gone.session, gone.owned_epoch) for gone in opened(run).of(Gone)]
    assert said == [("controller", session, 4)] * says_gone


def test_a_shadow_whose_session_was_closed_is_let_go_once() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Close(session="s-1"))
        await trial.settle()
        shadow = trial.worker.copies.reserve("s-1", Layout(leaves=(), storages=(), arena_bytes=1))
        trial.worker.take(Close(session="s-1"))
        await trial.settle()
        shadow.discard()
        shadow.release()

    trial = opened(run)
    assert trial.copies().copies == ()
    assert trial.copies().slots_quarantined == 0


def test_shutdown_is_passed_on() -> None:
    asked: list[bool] = []

    async def main() -> None:
        trial = bench(on_shutdown=lambda: asked.append(True))
        trial.worker.take(Shutdown())

    asyncio.run(main())
    assert asked == [True]


def test_on_a_new_link_a_worker_says_what_it_holds_and_sends_again_what_nobody_acknowledged() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1, 2)
        await trial.settle()
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=0, server_life=1))
        trial.sent.clear()
        trial.worker.joined()

    trial = opened(run)
    assert isinstance(trial.sent[0], Hello)
    assert [(copy.session, copy.block) for copy in trial.sent[0].copies] == [("s-1", 3)]
    assert trial.blocks() == [1, 2]


def test_a_new_link_is_told_all_that_is_held_before_what_may_be_lost_is_sent_again() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1, 2, 3, 6)
        await trial.settle()
        for block in (0, 1):
            trial.worker.take(Acknowledge(session="s-1", epoch=1, block=block, server_life=5))
        trial.sent.clear()
        trial.worker.joined()

    trial = opened(run)
    hello, *held, left_0, left_1, again_2, again_3, reported = [
        message for message in trial.sent if not isinstance(message, Copies)
    ]
    assert isinstance(hello, Hello)
    assert hello.copies == (Copy(session="s-1", phase="live", epoch=1, block=4, left=2),)
    assert [(message.block, len(message.changes)) for message in held] == [(2, 0), (3, 1), (6, 0)]
    assert [message.block.block for message in (left_0, left_1)] == [0, 1]
    assert isinstance(reported, Reported)
    assert [message.block for message in (again_2, again_3)] == [2, 3]


def test_an_earlier_servers_acknowledgement_counts_no_more() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1)
        await trial.settle()
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=0, server_life=6))
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=1, server_life=5))
        trial.sent.clear()
        trial.worker.joined()

    assert opened(run).blocks() == [1]


def test_a_beat_is_answered_by_its_number() -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Beat(number=7))

    assert opened(run).of(Alive) == [Alive(number=7, block_s=0.01, turn_s=0.0, spare_s=0.01, ages_s=(), num_done=1)]


def test_each_beats_answer_says_which_moves_were_got_on_with_since_the_one_before() -> None:
    async def run(trial: Bench) -> None:
        progress = trial.worker.tools.progress
        progress.one_more_pulled("m-1")
        progress.one_more("m-2")
        progress.one_more_pulled("m-1")
        for number in range(3):
            trial.worker.take(Beat(number=number))
            progress.one_more_pulled()

    answers = opened(run).of(Alive)
    assert [(alive.attempts, alive.num_pulled) for alive in answers] == [(("m-1", "m-2"), 2), ((), 3), ((), 4)]


def test_an_owner_that_is_told_of_a_later_epoch_computes_no_further_and_asks_the_ledger() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1)
        await trial.settle()
        trial.worker.take(Refused(session="s-1", epoch=1))  # its own: old news
        trial.inputs(2)
        await trial.settle()
        trial.worker.take(Refused(session="s-1", epoch=2))
        await trial.settle()
        trial.inputs(3)

    trial = opened(run)
    assert trial.blocks() == [0, 1, 2]
    assert trial.copies().copies[0].phase == "superseded"
    assert [type(asked.operation).__name__ for asked in trial.of(LedgerAsk)] == ["CloseAttempt"]


def test_what_was_not_acknowledged_is_sent_again_when_the_server_asks() -> None:
    async def run(trial: Bench) -> None:
        trial.inputs(0, 1, 2)
        await trial.settle()
        trial.worker.take(Acknowledge(session="s-1", epoch=1, block=0, server_life=1))
        trial.worker.take(SendAgain(session="s-2"))
        trial.worker.take(SendAgain(session="s-1"))

    assert opened(run).blocks() == [0, 1, 2, 1, 2]


def test_an_engine_that_raises_ends_its_session_alone_and_says_so_before_it_says_that_it_is_gone() -> None:
    engine = CountingEngine()

    def fail(world: object) -> None:
        if engine.steps == 3:
            raise ValueError("no such place")

    engine.during_step = fail

    async def run(trial: Bench) -> None:
        trial.worker.take(Open(session="s-2", epoch=1, seed=6))
        await trial.settle()
        trial.inputs(0, 1)
        await trial.settle()
        trial.inputs(2)
        await trial.settle()
        trial.inputs(0, 1, session="s-2")

    trial = opened(run, engine)
    said = [message for message in trial.sent if isinstance(message, Failed | Gone)]
    assert [type(message) for message in said] == [Failed, Gone]
    assert trial.of(Failed) == [
        Failed(
            session="s-1",
            code="engine_failed",
            message="the engine failed to step a block: ValueError('no such place')",
        )
    ]
    assert trial.of(Gone)[0].owned_epoch == 1
    assert [(done.session, done.block) for done in trial.of(BlockDone)][-2:] == [("s-2", 0), ("s-2", 1)]
    assert [copy.session for copy in trial.copies().copies] == ["s-2"]
    assert trial.copies().slots_free == 1


def test_an_engine_that_raises_while_it_opens_is_answered_and_ends_nothing() -> None:
    class Broken(CountingEngine):
        def open(self, seed: int) -> World:
            if seed == 6:
                raise MemoryError("too large a world")
            return super().open(seed)

    async def run(trial: Bench) -> None:
        trial.worker.take(Open(session="s-2", epoch=1, seed=6))
        await trial.settle()

    (failed,) = opened(run, Broken()).of(Failed)
    assert (failed.session, failed.code) == ("s-2", "engine_failed")
    assert "too large a world" in failed.message


def test_an_engine_that_raises_an_error_of_ours_in_mid_step_ends_its_session_alone() -> None:
    engine = CountingEngine()

    def fail(world: World) -> None:
        if world.block == 1:
            raise UserError("there is no such key")

    engine.during_step = fail

    async def run(trial: Bench) -> None:
        trial.worker.take(Open(session="s-2", epoch=1, seed=6))
        await trial.settle()
        trial.inputs(0, 1)
        await trial.settle()
        trial.inputs(0, session="s-2")

    trial = opened(run, engine)
    assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-1", "engine_failed")]
    assert [(done.session, done.block) for done in trial.of(BlockDone)] == [("s-1", 0), ("s-2", 0)]


def test_a_block_of_more_pictures_than_a_message_holds_ends_its_session_alone() -> None:
    class Large(CountingEngine):
        def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
            block = super().step(session, changes)
            return replace(block, frames=np.zeros((2, 1, 1, (MAX_BLOB_BYTES >> 1) + 1), dtype=np.uint8))

    async def run(trial: Bench) -> None:
        trial.inputs(0)

    trial = opened(run, Large())
    assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-1", "engine_failed")]
    assert trial.blocks() == []


@pytest.mark.parametrize(("asked", "size"), [(0, 1 << 14), (1, 1 << 14), (1 << 14, 1 << 14), ((1 << 20) - 1, 1 << 20)])
def test_slots_are_as_large_as_is_asked_for_and_never_smaller_than_a_young_world_needs(asked: int, size: int) -> None:
    async def run(trial: Bench) -> None:
        assert trial.worker.hello().arena_bytes == size
        layout = Layout(leaves=(), storages=(), arena_bytes=size + 1)
        with pytest.raises(MoveRefused, match="a slot here has"):
            trial.worker.copies.reserve("s-2", layout)
        trial.worker.copies.reserve("s-2", replace(layout, arena_bytes=size))

    opened(run, slot_bytes=asked)
