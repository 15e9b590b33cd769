"""A state copied aside while its session plays on: when it is of, what it holds, and whose its slot is afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.worker.bench_worker import Bench, bench
from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import KeyChange
from worldmove.errors import ArenaFull, MoveRefused, StateRefused
from worldmove.state.digest import state_digest
from worldmove.worker.messages import Close, Open
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.snapshot import Snapshot
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.states import DIGESTER, digest_of

Trial = Callable[[Bench, SessionCopy], Awaitable[None]]


def played(run: Trial, engine: CountingEngine | None = None, **options: Any) -> Bench:
    async def main() -> Bench:
        trial = bench(engine, **options)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        await run(trial, copy)
        await trial.settle()
        return trial

    return asyncio.run(main())


def unmoved(num_blocks: int) -> str:
    """Return the state digest of the bare engine after so many blocks."""
    engine = CountingEngine()
    session = engine.open(5)
    for block in range(num_blocks):
        engine.step(session, [KeyChange(number=block, key="up", down=True) for _ in range(block % 2)])
    return digest_of(engine, session)


def test_a_snapshot_is_of_its_block_for_ever_though_the_session_plays_on() -> None:
    taken: list[Snapshot] = []

    async def run(trial: Bench, copy: SessionCopy) -> None:
        trial.inputs(0, 1, 2)
        await trial.settle()
        taken.append(await trial.worker.copies.snapshot(copy))
        trial.inputs(3, 4)
        await trial.settle()
        assert (taken[0].block, copy.next_block) == (3, 5)
        assert state_digest(taken[0].capture(), DIGESTER).text == unmoved(3)
        assert digest_of(trial.engine, copy.engine_session) == unmoved(5)

    assert played(run).blocks() == [0, 1, 2, 3, 4]


def test_a_snapshot_asked_in_mid_step_is_of_the_boundary_after_it() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        asked: list[asyncio.Task[Snapshot]] = []

        def during(world: World) -> None:
            trial.engine.during_step = lambda world: None
            asked.append(asyncio.ensure_future(trial.worker.copies.snapshot(copy)))

        trial.engine.during_step = during
        trial.inputs(0)
        await trial.settle()
        snapshot = await asked[0]
        assert (snapshot.block, state_digest(snapshot.capture(), DIGESTER).text) == (1, unmoved(1))

    played(run)


def test_a_worker_whose_slots_are_all_taken_takes_no_snapshot_and_plays_on() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        with pytest.raises(MoveRefused) as refused:
            await trial.worker.copies.snapshot(copy)
        assert refused.value.reason == "no_slot"
        trial.inputs(0)

    assert played(run, num_slots=1).blocks() == [0]


def test_a_snapshots_slot_is_counted_as_taken_and_is_free_once_it_is_freed_however_often() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        first = await trial.worker.copies.snapshot(copy)
        await trial.settle()
        assert trial.copies().slots_free == 1
        first.free()
        second = await trial.worker.copies.snapshot(copy)
        first.free()
        await trial.settle()
        assert trial.copies().slots_free == 1
        second.free()

    assert played(run, num_slots=3).copies().slots_free == 2


@pytest.mark.parametrize("phase", [CopyPhase.FROZEN, CopyPhase.SUPERSEDED, CopyPhase.RETIRED])
def test_of_a_copy_that_is_not_played_there_is_no_snapshot(phase: CopyPhase) -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        copy.enter(phase)
        with pytest.raises(MoveRefused) as refused:
            await trial.worker.copies.snapshot(copy)
        assert refused.value.reason == "not_played"

    assert played(run).copies().slots_free == 1


def test_whoever_gives_up_waiting_for_a_snapshot_leaves_its_slot_free() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        trial.inputs(0)
        await trial.settle()
        await asyncio.sleep(0.3 * trial.engine.spec.period_s)  # the boundary is not fresh: it waits for a step
        waiting = asyncio.ensure_future(trial.worker.copies.snapshot(copy))
        await trial.settle()
        assert trial.copies().slots_free == 0
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    assert played(run).copies().slots_free == 1


def test_a_session_that_is_closed_while_its_snapshot_waits_for_a_boundary_leaves_no_slot_taken() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        trial.inputs(0)
        await trial.settle()
        await asyncio.sleep(0.3 * trial.engine.spec.period_s)
        waiting = asyncio.ensure_future(trial.worker.copies.snapshot(copy))
        await trial.settle()
        trial.worker.take(Close(session="s-1"))
        with pytest.raises(MoveRefused):
            await waiting

    assert played(run).copies().slots_free == 2


@pytest.mark.parametrize("error", [RuntimeError("of its own making"), StateRefused("a", "b"), ArenaFull(2, 1)])
def test_a_state_that_cannot_be_copied_aside_refuses_the_snapshot_and_nothing_else(error: Exception) -> None:
    def fails(session: World) -> Any:
        raise error

    async def run(trial: Bench, copy: SessionCopy) -> None:
        state, trial.engine.state = trial.engine.state, fails
        with pytest.raises(type(error) if not isinstance(error, RuntimeError) else StateRefused):
            await trial.worker.copies.snapshot(copy)
        trial.engine.state = state
        trial.inputs(0)

    trial = played(run)
    assert (trial.blocks(), trial.copies().slots_free) == ([0], 1)


def test_a_copy_that_takes_over_has_a_snapshot_only_once_it_has_replayed_what_was_shown() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        copy.retire("", 0)
        copy.replay(epoch=2, block=3)
        waiting = asyncio.ensure_future(trial.worker.copies.snapshot(copy))
        trial.inputs(0, 1)
        await trial.settle()
        assert not waiting.done()
        trial.inputs(2)
        snapshot = await waiting
        assert snapshot.block == 3

    played(run)


@pytest.mark.parametrize("phase", [CopyPhase.FREEING, CopyPhase.FROZEN, CopyPhase.SUPERSEDED])
def test_a_copy_that_plays_no_more_before_it_has_replayed_all_leaves_no_snapshot_waiting(phase: CopyPhase) -> None:
    """Closed, say: its slot is given back though a list that it would have replayed never came."""

    async def run(trial: Bench, copy: SessionCopy) -> None:
        copy.retire("", 0)
        copy.replay(epoch=2, block=3)
        waiting = asyncio.ensure_future(trial.worker.copies.snapshot(copy))
        trial.inputs(0, 1)
        await trial.settle()
        copy.enter(phase)
        async with asyncio.timeout(5.0):
            with pytest.raises(MoveRefused) as refused:
                await waiting
        assert refused.value.reason == "not_played"
        trial.worker.take(Close(session="s-1"))

    assert played(run).copies().slots_free == 2


def test_a_moves_source_freezes_as_ever_beside_a_snapshot() -> None:
    async def run(trial: Bench, copy: SessionCopy) -> None:
        trial.inputs(0)
        await trial.settle()
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        snapshot, frozen = await asyncio.gather(trial.worker.copies.snapshot(copy), source.freeze())
        assert (snapshot.block, frozen.block) == (1, 1)

    played(run)
