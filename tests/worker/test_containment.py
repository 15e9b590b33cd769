"""Whatever a task of one session raises, and wherever: that session's part ends, loudly, and no other's."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.move.virtual import run as run_virtually
from tests.worker.bench_worker import Bench, bench, inline
from tests.worker.planted import Plant, PlantedError
from tests.worker.test_move_between_workers import Pair
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Abandon, Ended, Gone, Proof
from worldmove.move.source_inbox import SourceInbox
from worldmove.move.undertaking import Undertaking
from worldmove.transport.loopback import Loopback, LoopbackChannel
from worldmove.worker.drivers import MAX_DRIVER_FAILURES
from worldmove.worker.messages import BlockDone, Close, Copies, Describe, Failed, Fault, NotDone, Open, Save

MOST = 40
"""Awaits at which a bug is planted, one after another; a task that has fewer ends the row."""
LONG_S = 30.0


def at_each_await(task: str, trial: Callable[[Plant], Coroutine[Any, Any, None]]) -> None:
    """Run a trial with a bug at the first await of a task, at its second, and so on to its end."""
    num_raised = 0
    for number in range(MOST):
        plant = Plant(task, number)
        run_virtually(trial(plant))
        if not plant.has_raised:
            break
        num_raised += 1
    assert num_raised


async def neighbour_plays(trial: Bench, num_free: int) -> None:
    """Another session plays on, every slot but its own is free, and there is room for a later one."""
    await asyncio.sleep(LONG_S)
    await trial.settle()
    trial.inputs(0, 1, session="s-2")
    await trial.settle()
    assert [done.block for done in trial.of(BlockDone) if done.session == "s-2"] == [0, 1]
    assert [copy.session for copy in trial.copies().copies] == ["s-2"]
    assert (trial.copies().slots_free, trial.copies().slots_quarantined) == (num_free, 0)
    trial.worker.take(Open(session="s-3", epoch=1, seed=7))
    await trial.settle()
    trial.inputs(0, session="s-3")
    await trial.settle()
    assert [done.block for done in trial.of(BlockDone) if done.session == "s-3"] == [0]


def faulty(faults: list[str], **host: Any) -> Bench:
    return bench(on_fault=lambda task, error: faults.append(task), **host)


@pytest.mark.parametrize("task", ["CopyTable._play", "Requests._open", "Requests._close"])
def test_a_session_whose_task_fails_ends_alone_and_says_why(task: str) -> None:
    async def trial(plant: Plant) -> None:
        faults: list[str] = []
        worker = faulty(faults)
        worker.worker.take(Open(session="s-2", epoch=1, seed=6))
        await worker.settle()
        plant.sow()
        worker.worker.take(Open(session="s-1", epoch=1, seed=5))
        await worker.settle()
        for block in range(2):
            worker.inputs(block)
            await worker.settle()
        worker.worker.take(Close(session="s-1"))
        await neighbour_plays(worker, 1)
        assert len(faults) == len(worker.of(Fault)) == plant.has_raised
        if plant.has_raised and task != "Requests._close":
            assert {failed.session for failed in worker.of(Failed)} <= {"s-1"}
        await worker.background.stop()

    at_each_await(task, trial)


@pytest.mark.parametrize("saves", [False, True])
def test_a_question_that_fails_is_refused_and_its_session_plays_on(tmp_path: Path, *, saves: bool) -> None:
    async def trial(plant: Plant) -> None:
        faults: list[str] = []
        worker = faulty(faults)
        worker.worker.take(Open(session="s-1", epoch=1, seed=5))
        await worker.settle()
        plant.sow()
        asked = Describe(session="s-1", request=7)
        path = str(tmp_path / f"{plant.number}.saved")
        worker.worker.take(Save(session="s-1", request=7, path=path) if saves else asked)
        worker.inputs(0)
        await worker.settle()
        assert worker.blocks() == [0]
        refused = [(refusal.request, refusal.code) for refusal in worker.of(NotDone)]
        assert refused == ([(7, "internal")] if plant.has_raised else [])
        assert len(faults) == plant.has_raised
        await worker.background.stop()

    at_each_await("Requests._answer", trial)


async def set_out(pair: Pair) -> None:
    """Conduct a move for as long as its ends answer."""
    try:
        await pair.start_move()
    except AssertionError:
        return


def moved(trial: Callable[[Pair, Plant], Coroutine[Any, Any, None]], plant: Plant, faults: list[str]) -> Any:
    async def run() -> None:
        pair = Pair(on_fault=lambda task, error: faults.append(task))
        for name in ("a", "b"):
            pair.benches[name].worker.take(Open(session="s-2", epoch=1, seed=6))
        plant.sow()
        await pair.open_on_a(3)
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        await trial(pair, plant)
        await pair.close()

    return run()


@pytest.mark.parametrize("silent", [False, True])
def test_a_destination_that_fails_anywhere_aborts_its_move_and_gives_its_slot_back(*, silent: bool) -> None:
    """In doubt too: it reports then that it holds no copy, and where it owns the session the server goes by that."""

    async def trial(pair: Pair, plant: Plant) -> None:
        pair.silent = silent
        await set_out(pair)
        await asyncio.sleep(5.0)
        pair.silent = False
        if not plant.has_raised:
            return
        abandoned = [message for message in pair.benches["b"].of(Abandon) if message.to == "a"]
        ended = [m for m in pair.benches["b"].of(Ended) if (m.outcome, m.reason) == ("aborted", "internal")]
        assert abandoned
        assert ended
        await neighbour_plays_at(pair, "b")

    def planted(plant: Plant) -> Any:
        return moved(trial, plant, [])

    at_each_await("Drivers._drive_destination", planted)


async def neighbour_plays_at(pair: Pair, name: str) -> None:
    worker = pair.benches[name]
    worker.inputs(0, 1, session="s-2")
    await asyncio.sleep(LONG_S)
    await pair.settle()
    assert [done.block for done in worker.of(BlockDone) if done.session == "s-2"] == [0, 1]
    report: Copies = worker.copies()
    assert [copy.session for copy in report.copies] == ["s-2"]
    assert (report.slots_free, report.slots_quarantined) == (1, 0)


def test_a_source_that_fails_before_its_proof_plays_on_and_one_that_fails_after_it_ends_alone() -> None:
    async def trial(pair: Pair, plant: Plant) -> None:
        a = pair.benches["a"]
        await set_out(pair)
        await asyncio.sleep(5.0)
        if not plant.has_raised:
            return
        if [message for message in a.of(Proof) if message.to == "b"]:
            await neighbour_plays_at(pair, "a")
        else:
            a.inputs(3)
            a.inputs(0, session="s-2")
            await pair.settle()
            assert [done.block for done in a.of(BlockDone) if done.session == "s-1"][-1] == 3
            assert [(copy.session, copy.phase) for copy in a.copies().copies] == [("s-2", "live"), ("s-1", "live")]
            assert a.of(Failed) == []

    def planted(plant: Plant) -> Any:
        return moved(trial, plant, [])

    at_each_await("Drivers._drive_source", planted)


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_world_whose_moves_all_fail_plays_on_and_one_whose_driver_fails_before_it_is_asked_anything_ends(
    monkeypatch: pytest.MonkeyPatch, *, is_asked: bool
) -> None:
    async def fails(*_: Any) -> None:
        raise PlantedError("whatever it is asked")

    async def main() -> None:
        faults: list[str] = []
        pair = Pair(on_fault=lambda task, error: faults.append(task))
        await pair.open_on_a(3)
        a = pair.benches["a"]
        if is_asked:
            monkeypatch.setattr(Undertaking, "prepare", fails)
        else:
            monkeypatch.setattr(SourceInbox, "live", fails)
        for _ in range(2 * MAX_DRIVER_FAILURES):
            pair.prepare("loopback")
            await pair.settle()
        a.inputs(3)
        await pair.settle()
        assert a.blocks()[-1] == (3 if is_asked else 2)
        assert [failed.session for failed in a.of(Failed)] == ([] if is_asked else ["s-1"])
        in_a_row = 1 + MAX_DRIVER_FAILURES  # after one that was there before, and had been asked
        assert len(faults) == (2 * MAX_DRIVER_FAILURES if is_asked else 1 + in_a_row)
        await pair.close()

    run_virtually(main())


def test_a_message_that_cannot_be_taken_ends_its_session_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        faults: list[str] = []
        worker = faulty(faults)
        for session in ("s-1", "s-2"):
            worker.worker.take(Open(session=session, epoch=1, seed=5))
        await worker.settle()
        copy = worker.worker.copies.get("s-1")
        assert copy is not None
        copy.inputs.put = None  # type: ignore[method-assign, assignment]
        worker.inputs(0)
        await neighbour_plays(worker, 1)
        assert faults == ["inputs s-1"]
        assert [(failed.session, failed.code) for failed in worker.of(Failed)] == [("s-1", "internal")]
        assert [gone.owned_epoch for gone in worker.of(Gone)] == [1]
        await worker.background.stop()

    run_virtually(main())


class Clinging(Loopback):
    """A path whose channels cannot be let go of."""

    async def connect(self, ticket: bytes) -> LoopbackChannel:
        channel = await super().connect(ticket)

        async def close() -> None:
            raise PlantedError("it does not let go")

        channel.close = close  # type: ignore[method-assign]
        return channel


def test_a_slot_of_which_a_path_does_not_let_go_stays_in_quarantine_and_its_worker_plays_on() -> None:
    async def main() -> None:
        faults: list[str] = []
        path = Clinging(blocking=inline, tokens=lambda: bytes(32))
        pair = Pair(transports={"loopback": path}, on_fault=lambda task, error: faults.append(task))
        pair.benches["b"].worker.take(Open(session="s-2", epoch=1, seed=6))
        await pair.open_on_a(3)
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        await set_out(pair)
        await asyncio.sleep(5.0)
        b = pair.benches["b"]
        b.inputs(0, session="s-2")
        await pair.settle()
        assert faults == ["destination s-1", "release s-1"]
        assert [done.block for done in b.of(BlockDone) if done.session == "s-2"] == [0]
        assert (b.copies().slots_free, b.copies().slots_quarantined) == (0, 1)
        assert [gone.owned_epoch for gone in b.of(Gone)] == [2]
        await pair.close()

    run_virtually(main())
