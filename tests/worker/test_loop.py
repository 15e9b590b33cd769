"""The block loop under freezes, retirements and replays."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.move import virtual
from tests.worker.bench_worker import Bench, bench
from tests.worker.counting import CountingEngine
from worldmove.errors import ProtocolError
from worldmove.move.source_copy import Frozen
from worldmove.state.arena import Arena
from worldmove.state.placement import extents
from worldmove.worker import inputs
from worldmove.worker.messages import Acknowledge, Alive, Beat, BlockDone, CheckDone, Open
from worldmove.worker.session import SessionCopy
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.tools import Tools

T = TypeVar("T")
Trial = Callable[[Bench, SessionCopy, SourceOfMove], Awaitable[None]]


def played(run: Trial, engine: CountingEngine | None = None, **options: int) -> Bench:
    """Run a trial on one opened session, ordered about as by a move's source."""

    async def main() -> Bench:
        trial = bench(engine, **options)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        tools: Tools = trial.worker.tools
        await run(trial, copy, SourceOfMove(copy, tools, trial.worker.copies.snapshot))
        await trial.settle()
        return trial

    return asyncio.run(main())


def acknowledge(trial: Bench, block: int) -> None:
    trial.worker.take(Acknowledge(session="s-1", epoch=2, block=block, server_life=1))


def test_a_freeze_asked_in_mid_step_is_met_at_that_steps_end_and_nothing_is_stepped_after_it() -> None:
    frozen: list[Frozen] = []

    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        asked: list[asyncio.Task[Frozen]] = []
        trial.engine.during_step = lambda world: asked.append(asyncio.ensure_future(source.freeze()))
        trial.inputs(0)
        await trial.settle()
        trial.engine.during_step = lambda world: None
        trial.inputs(1, 2)
        frozen.append(await asked[0])
        await trial.settle()

    trial = played(run)
    assert trial.engine.steps == frozen[0].block
    assert trial.blocks() == list(range(frozen[0].block))


def test_a_resting_session_is_frozen_where_it_stands() -> None:
    frozen: list[Frozen] = []

    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        frozen.append(await source.freeze())

    played(run)
    assert frozen[0].block == 0


def test_a_session_in_play_is_frozen_at_the_end_of_its_next_block() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.inputs(0)
        await trial.settle()
        await asyncio.sleep(0.02)  # of a period of 0.05: the boundary is no longer fresh
        freezing = asyncio.create_task(source.freeze())
        await trial.settle()
        assert not freezing.done()
        trial.inputs(1)
        assert (await freezing).block == 2

    played(run)


def test_what_has_left_the_slot_is_gathered_at_the_freeze() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.inputs(0, 1)
        await trial.settle()
        frozen = await source.freeze()
        (only,) = extents(frozen.capture.manifest, frozen.placement)
        assert isinstance(source.arena, Arena)
        there = bytes(source.arena.buffer[only.offset : only.end])
        assert there == bytes(copy.engine_session.numbers.numpy().data)

    played(run, CountingEngine(rebinds=True))


def test_a_thawed_session_goes_on_and_sends_again_what_nobody_acknowledged() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.inputs(0, 1)
        await trial.settle()
        acknowledge(trial, 0)
        await source.freeze()
        trial.inputs(2)
        await trial.settle()
        source.thaw(3)
        await trial.settle()

    trial = played(run)
    assert [(done.block, done.epoch) for done in trial.of(BlockDone)] == [(0, 1), (1, 1), (1, 3), (2, 3)]


def test_only_a_live_copy_is_frozen() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        source.supersede()
        with pytest.raises(ProtocolError):
            await source.freeze()

    played(run)


def test_a_superseded_copy_keeps_its_state_and_computes_nothing() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        source.supersede()
        trial.inputs(0, 1)
        await trial.settle()
        assert copy.engine_session is not None

    assert played(run).blocks() == []


def test_a_retired_copy_steps_its_checks_sends_none_of_their_frames_and_then_stops() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.inputs(0)
        await trial.settle()
        await source.freeze()
        source.retire("a-1")
        trial.inputs(1, 2, 3, 4)
        acknowledge(trial, 4)
        await trial.rest()

    trial = played(run)
    assert trial.blocks() == [0]
    assert trial.checks() == [1, 2]
    assert all(done.state_digest and done.attempt == "a-1" for done in trial.of(CheckDone))


def test_an_owner_that_was_replaced_in_the_middle_of_a_step_sends_no_check_of_it() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.inputs(0)
        for _ in range(20):
            if not copy.step.is_there:
                await asyncio.sleep(0)
        assert copy.step.is_there
        source.supersede()
        source.retire("")
        await copy.step.over()
        assert copy.next_block == 1

    trial = played(run)
    assert trial.failures == []
    assert trial.checks() == []


def test_a_retired_copy_that_can_never_be_given_the_lists_of_its_checks_is_not_needed_for_them() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        passed = asyncio.create_task(source.passed(0))
        acknowledge(trial, 3)
        await trial.settle()
        assert not passed.done()  # the lists of its checks may still come
        trial.inputs(4)  # lists come in order: an earlier server closed those before, and they are gone with it
        acknowledge(trial, 4)
        await passed

    played(run)


def test_a_retired_copy_that_stays_for_want_of_a_snapshot_is_let_go_when_it_is_too_far_behind_to_take_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "MAX_LISTS", 10)

    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        copy.stays = True
        await source.freeze()
        source.retire("")
        passed = asyncio.create_task(source.passed(0))
        for block in range(10):
            trial.inputs(block)
            acknowledge(trial, block)
        await trial.settle()
        assert not passed.done()
        trial.inputs(10)
        await passed

    played(run)


def test_a_retired_copy_is_needed_until_its_checks_are_done_and_the_owners_own_have_left_the_gateway() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        passed = asyncio.create_task(source.passed(0))
        trial.inputs(0)
        await trial.settle()
        acknowledge(trial, 1)
        await trial.settle()
        assert not passed.done()  # one check is owed
        trial.inputs(1)
        await passed

    async def early(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        passed = asyncio.create_task(source.passed(0))
        trial.inputs(0, 1)
        acknowledge(trial, 0)
        await trial.settle()
        assert not passed.done()  # block 1 has not left the gateway: its owner may fail at it
        acknowledge(trial, 1)
        await passed

    played(run)
    played(early)


def test_a_check_begins_once_the_owners_own_block_has_left_the_gateway() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        trial.inputs(0, 1)
        await trial.settle()
        assert trial.checks() == []  # the owner is at block 0 itself
        acknowledge(trial, 0)
        await trial.settle()
        assert trial.checks() == [0]
        acknowledge(trial, 1)
        await trial.settle()
        assert trial.checks() == [0, 1]

    played(run)


def test_a_replay_is_silent_until_the_block_that_is_due_and_then_plays() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        trial.inputs(0, 1, 2, 3)
        acknowledge(trial, 2)
        await trial.settle()
        source.replay(5, 3)
        trial.inputs(4)
        await trial.settle()

    trial = played(run)
    assert trial.checks() == [0, 1]
    assert [(done.block, done.epoch) for done in trial.of(BlockDone)] == [(3, 5), (4, 5)]


def test_a_freeze_waits_until_what_was_shown_already_is_replayed() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        source.replay(5, 2)
        freezing = asyncio.create_task(source.freeze())
        trial.inputs(0)
        await trial.settle()
        assert not freezing.done()
        trial.inputs(1)
        assert (await freezing).block == 2

    assert played(run).blocks() == []


def test_a_takeover_shows_a_check_block_that_its_owner_never_delivered() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("a-1")
        trial.inputs(0, 1)
        acknowledge(trial, 0)
        await trial.settle()
        source.replay(5, 1)
        await trial.settle()

    assert [(done.block, done.epoch) for done in played(run).of(BlockDone)] == [(1, 5)]


def test_the_first_blocks_after_a_move_carry_a_state_digest_and_no_others() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        copy.promote(2, 0, 2)
        trial.inputs(0, 1, 2)
        await trial.settle()

    assert [bool(done.state_digest) for done in played(run).of(BlockDone)] == [True, True, False]


def test_a_state_that_cannot_be_carried_after_a_move_has_no_digest_and_the_session_plays_on() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        copy.promote(2, 0, 2)
        trial.engine.state = lambda session: {"number": object()}
        trial.inputs(0, 1, 2)
        await trial.settle()

    assert [(done.block, done.state_digest) for done in played(run).of(BlockDone)] == [(0, ""), (1, ""), (2, "")]


def test_an_owners_blocks_go_before_a_retired_copys_checks() -> None:
    order: list[str] = []

    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        trial.worker.take(Open(session="s-2", epoch=1, seed=9))
        await trial.settle()
        await source.freeze()
        source.retire("a-1")
        other = trial.worker.copies.get("s-2")
        assert other is not None
        trial.engine.during_step = lambda world: order.append("owner" if world is other.engine_session else "check")
        async with trial.worker.tools.turns.take(0):  # type: ignore[arg-type]
            trial.inputs(0, 1)
            acknowledge(trial, 1)
            await trial.settle()
            trial.inputs(0, session="s-2")
            await trial.settle()
        await trial.rest()

    played(run)
    assert order == ["owner", "check", "check"]


def test_a_shadow_that_is_complete_says_where_it_stands_before_it_hears_that_it_owns_the_session() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        shadow = trial.worker.copies.reserve("s-2", await source.layout())
        await trial.settle()
        (held,) = [held for held in trial.copies().copies if held.session == "s-2"]
        assert (held.phase, held.block, held.left) == ("shadow", 0, 0)
        shadow.verified(4)
        await trial.settle()
        (held,) = [held for held in trial.copies().copies if held.session == "s-2"]
        assert (held.phase, held.block, held.left) == ("shadow", 4, 4)
        shadow.discard()
        shadow.release()

    played(run)


def test_a_turn_is_as_long_as_its_block_keeps_the_engine_and_what_it_waits_for_is_anothers() -> None:
    """Three blocks that are asked for at once, one of them while a pause is held free."""

    async def slow(function: Callable[[], T]) -> T:
        await asyncio.sleep(0.1)
        return function()

    async def main() -> Alive:
        trial = bench(num_slots=3, engine_thread=slow)
        for session in ("s-1", "s-2"):
            trial.worker.take(Open(session=session, epoch=1, seed=5))
        await asyncio.sleep(1.0)
        hold = trial.worker.tools.turns.hold()
        trial.inputs(0)
        await asyncio.sleep(0.7)
        hold.end()
        trial.inputs(0, 1, session="s-2")
        await asyncio.sleep(0.5)
        trial.worker.take(Beat(number=1))
        await trial.background.stop()
        assert len(trial.of(BlockDone)) == 3
        return trial.of(Alive)[-1]

    alive = virtual.run(main())
    assert alive.block_s == 0.0
    assert alive.turn_s == pytest.approx(0.1)


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_whoever_takes_over_says_the_state_of_every_block_that_a_source_in_doubt_may_check(ahead: int) -> None:
    """It had computed what there were lists for by then, and checks as many blocks from there on as after any move."""

    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("")
        trial.inputs(*range(3 + ahead))
        source.replay(5, 3)
        await trial.settle()
        trial.inputs(*range(3 + ahead, 8 + ahead))
        await trial.settle()

    digests = {done.block: bool(done.state_digest) for done in played(run).of(BlockDone)}
    assert digests == {block: block < 3 + ahead + 2 for block in range(3, 8 + ahead)}


def test_where_no_block_is_checked_whoever_takes_over_says_no_state() -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        await source.freeze()
        source.retire("")
        trial.inputs(0, 1, 2)
        source.replay(5, 1)
        await trial.settle()

    done = played(run, check_blocks=0).of(BlockDone)
    assert [(one.block, one.state_digest) for one in done] == [(1, ""), (2, "")]


@pytest.mark.parametrize("stays", [True, False])
def test_a_retired_copy_says_whether_it_stays(*, stays: bool) -> None:
    async def run(trial: Bench, copy: SessionCopy, source: SourceOfMove) -> None:
        source.stay(stays=stays)
        await source.freeze()
        source.retire("a-1")

    assert [(copy.phase, copy.stays) for copy in played(run).copies().copies] == [("retired", stays)]
