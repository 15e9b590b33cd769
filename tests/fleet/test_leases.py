"""Leases: who is suspected, from when, and what never counts."""

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.fleet.fakes import Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import LedgerError, UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.leases import Leases
from worldmove.fleet.recovery import Recovery
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_messages import Answer, Denied, Failover, MarkShown, Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.worker.messages import Beat, SendAgain, TakeOver

CONFIG = FleetConfig(worker_lease_s=3.0, beat_s=0.5, recover_every_s=0.05, poll_s=0.1)


def record(server: Server, worker: str) -> WorkerRecord:
    return next(found for found in server.workers.all() if found.name == worker)


@dataclass(slots=True, kw_only=True)
class Watched:
    """A server whose leases run, and what they told."""

    server: Server
    leases: Leases
    told: list[tuple[str, str, float]] = field(default_factory=list)
    beats: dict[str, list[int]] = field(default_factory=dict)
    mute: list[str] = field(default_factory=list)
    running: "asyncio.Task[None] | None" = None

    def answer(self, worker: str, beat: Beat) -> None:
        self.beats.setdefault(worker, []).append(beat.number)
        if worker not in self.mute:
            self.leases.answered(record(self.server, worker), beat.number)

    def state(self, worker: str) -> WorkerState:
        return record(self.server, worker).view().state


async def watched() -> Watched:
    """Return a server of two workers that answer every beat at once."""
    server = await server_of("a", "b")
    loop = asyncio.get_running_loop()
    leases = Leases(
        config=CONFIG,
        workers=server.workers,
        on_suspected=lambda worker: found.told.append(("suspected", worker.name, loop.time())),
        on_answered=lambda worker: found.told.append(("answers", worker.name, loop.time())),
    )
    found = Watched(server=server, leases=leases)
    for name, wire in server.wires.items():
        wire.react = lambda message, name=name: (  # type: ignore[misc]
            found.answer(name, message) if isinstance(message, Beat) else None
        )
    found.running = asyncio.create_task(leases.run())
    return found


def test_a_worker_that_answers_is_never_suspected_and_one_that_does_not_is_after_one_lease() -> None:
    async def run() -> list[tuple[str, str, float]]:
        found = await watched()
        await asyncio.sleep(20)
        found.mute.append("b")
        await asyncio.sleep(20)
        return found.told

    ((event, worker, at),) = virtual.run(run())
    assert (event, worker) == ("suspected", "b")
    assert 20 + CONFIG.worker_lease_s - CONFIG.beat_s <= at <= 20 + CONFIG.worker_lease_s + CONFIG.beat_s


def test_a_worker_that_dies_is_sent_beats_that_it_never_answers() -> None:
    async def run() -> tuple[int, int, int, int]:
        found = await watched()
        await asyncio.sleep(1.75)
        a, b = record(found.server, "a"), record(found.server, "b")
        found.mute.append("b")
        await asyncio.sleep(1.5)
        return a.beat_sent, a.beat_answered, b.beat_sent, b.beat_answered

    assert virtual.run(run()) == (6, 6, 6, 3)


def test_one_that_answers_again_is_suspected_no_longer_and_may_be_moved_to() -> None:
    async def run() -> tuple[list[str], list[str]]:
        found = await watched()
        found.mute.append("b")
        await asyncio.sleep(5)
        refused = []
        try:
            found.server.workers.get("b")
        except UserError as error:
            refused.append(error.code)
        assert found.state("b") is WorkerState.SUSPECTED
        found.mute.clear()
        await asyncio.sleep(5)
        found.server.workers.get("b")
        return [event for event, _, _ in found.told], refused

    assert virtual.run(run()) == (["suspected", "answers"], ["worker_suspected"])


def test_an_answer_that_waited_longer_than_a_lease_renews_nothing() -> None:
    async def run() -> WorkerState:
        found = await watched()
        await asyncio.sleep(1)
        found.mute.append("b")
        old = found.beats["b"][-1]
        await asyncio.sleep(10)
        found.leases.answered(record(found.server, "b"), old)
        return found.state("b")

    assert virtual.run(run()) is WorkerState.SUSPECTED


def test_time_in_which_the_server_itself_did_not_run_counts_for_nobody() -> None:
    async def run() -> list[tuple[str, str, float]]:
        found = await watched()
        await asyncio.sleep(2.25)
        asyncio.get_running_loop()._now += 60.0  # type: ignore[attr-defined]  # it was stopped
        await asyncio.sleep(20)
        return found.told

    assert virtual.run(run()) == []


def test_a_suspected_owners_session_goes_to_a_retired_copy_and_is_never_lost() -> None:
    async def run(held: str, shown: bool) -> tuple[str, bool, list[object]]:
        server = await server_of("a", "b")
        if held:
            server.holds("b", copy_of("s", held))
        if shown:
            await mark_shown(server)
        record(server, "a").suspected = True
        recovery = Recovery(config=CONFIG, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        task = asyncio.create_task(recovery.recover("s"))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        row = server.desk.row("s")
        assert row is not None
        return row.owner, row.lost, [told for told in server.gateway.told if told[0] == "close_epoch"]

    assert virtual.run(run("retired", shown=True)) == ("b", False, [("close_epoch", 1)])
    assert virtual.run(run("", shown=True)) == ("a", False, [])
    assert virtual.run(run("retired", shown=False)) == ("b", False, [("close_epoch", 1)])
    # A copy that can asks for itself (reclaim); the owner's frames are not refused meanwhile.
    assert virtual.run(run("frozen", shown=False)) == ("a", False, [])


async def mark_shown(server: Server) -> None:
    await server.desk.ask(MarkShown(session="s", epoch=1))


class Sulking:
    """A ledger that raises where it is told to."""

    def __init__(self, server: Server) -> None:
        self._inner = server.desk._ledger
        self.sulks = False
        server.desk._ledger = self  # type: ignore[assignment]

    async def ask(self, operation: Operation, facts: Facts) -> tuple[Row | None, Answer | None]:
        if self.sulks:
            raise LedgerError("it does not answer")
        return await self._inner.ask(operation, facts)

    async def row(self, session: str) -> Row | None:
        if self.sulks:
            raise LedgerError("it does not answer")
        return await self._inner.row(session)


FAILOVER = Failover(session="s", epoch=1, worker="b", incarnation=1, log_reaches=9)


def test_a_failover_that_is_denied_leaves_the_owners_frames_to_be_shown_and_has_them_sent_again() -> None:
    async def run() -> tuple[Answer | None, list[object], list[object]]:
        server = await server_of("a", "b")
        answer = await server.desk.fail_over(FAILOVER)  # the owner answers, after all
        return answer, [told[0] for told in server.gateway.told], server.wires["a"].of(SendAgain)

    answer, told, sent = virtual.run(run())
    assert answer == Denied(session="s", reason="owner_lives")
    assert told[-2:] == ["close_epoch", "open_epoch"]
    assert sent == [SendAgain(session="s")]


def test_a_failover_that_got_no_answer_is_settled_even_if_the_owner_answers_again() -> None:
    async def run() -> tuple[list[str], list[str], str]:
        server = await server_of("a", "b")
        await mark_shown(server)
        server.holds("b", copy_of("s", "retired"))
        ledger = Sulking(server)
        ledger.sulks = True
        owner = record(server, "a")
        owner.suspected = True
        recovery = Recovery(config=CONFIG, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        task = asyncio.create_task(recovery.recover("s"))
        await asyncio.sleep(1)
        owner.suspected = False
        await asyncio.sleep(1)
        before = [told[0] for told in server.gateway.told]
        ledger.sulks = False
        assert await server.desk.check() is None
        await asyncio.wait_for(task, 5)
        row = server.desk.row("s")
        assert row is not None
        return before, [told[0] for told in server.gateway.told], row.owner

    before, after, owner = virtual.run(run())
    assert "close_epoch" in before
    assert "open_epoch" not in before
    assert after[-1] == "open_epoch"
    assert owner == "a"


class Forgetful(Sulking):
    """A ledger that does what it is asked and then raises."""

    async def ask(self, operation: Operation, facts: Facts) -> tuple[Row | None, Answer | None]:
        ruling = await self._inner.ask(operation, facts)
        if self.sulks:
            raise LedgerError("its answer did not come, after all was done")
        return ruling


def test_a_failover_whose_answer_was_lost_is_told_to_the_copy_that_owns_the_session_by_then() -> None:
    async def run() -> list[TakeOver]:
        server = await server_of("a", "b")
        await mark_shown(server)
        server.holds("b", copy_of("s", "retired"))
        ledger = Forgetful(server)
        ledger.sulks = True
        server.workers.gone("a", 1)
        recovery = Recovery(config=CONFIG, workers=server.workers, desk=server.desk, gateway=lambda: server.gateway)
        task = asyncio.create_task(recovery.recover("s"))
        await asyncio.sleep(1)
        ledger.sulks = False
        assert await server.desk.check() is None
        await asyncio.sleep(1)
        task.cancel()
        return server.wires["b"].of(TakeOver)

    told = virtual.run(run())
    assert told
    assert told[0].epoch == 2


def test_a_beats_answer_says_how_long_words_are_on_their_way_the_first_time() -> None:
    async def run() -> tuple[float, ...]:
        found = await watched()
        found.mute.append("a")
        worker = record(found.server, "a")
        await asyncio.sleep(CONFIG.beat_s + 0.02)
        for _ in range(2):
            found.leases.answered(worker, found.beats["a"][-1])
        if found.running is not None:
            found.running.cancel()
        return worker.way_s, len(worker.ways_s), record(found.server, "b").way_s

    assert virtual.run(run()) == pytest.approx((0.02, 1, 0.0))
