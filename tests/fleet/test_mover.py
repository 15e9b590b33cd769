"""Moves as somebody asks for them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar

import pytest
from prometheus_client import CollectorRegistry

from tests.fleet.fakes import ENVIRONMENT, Server, copy_of, server_of
from tests.move import virtual
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.containment import Containment
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.history import History
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.mover import Mover
from worldmove.fleet.notes import MemoryNotes, Notes
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.sessions import SessionRecord, SessionTable, view
from worldmove.fleet.tries import Ending, Plan
from worldmove.fleet.views import SessionState
from worldmove.move.ledger_messages import Failover, Lose, OpenAttempt
from worldmove.move.ledger_row import OpenedFor, Row
from worldmove.move.messages import Offer, Prepare, Prepared
from worldmove.state.capture import capture
from worldmove.state.layout import Layout
from worldmove.worker.messages import Copy

ATTEMPT = "00000001-x"


class NoHosts:
    async def start(self, *_: object) -> object:
        raise NotImplementedError

    async def close(self) -> None: ...


def mover_of(
    server: Server,
    salts: list[str],
    prepare_s: float = 0.05,
    faults: list[str] | None = None,
    *,
    transport: str = "shm",
) -> Mover:
    """Return a mover whose attempts get these salts, over workers that never answer."""
    sessions = SessionTable()
    sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
    ports = ControllerPorts(
        hosts=NoHosts(),  # type: ignore[arg-type]
        ledger=MemoryLedger(),
        wall_clock=lambda: 0.0,
        salt=lambda: salts.pop(0),
        nonce=lambda: bytes(32),
        counters=Counters(CollectorRegistry()),
        log=lambda event, fields: None if faults is None or event != "task_failed" else faults.append(event),
    )
    return Mover(
        config=FleetConfig(workers=("a", "b"), prepare_s=prepare_s, owner_s=0.3, transport=transport),
        ports=ports,
        workers=server.workers,
        sessions=sessions,
        desk=server.desk,
        gateway=lambda: server.gateway,
        history=History(Notes(MemoryNotes()), limit=8, log=ports.log),
        containment=Containment(ports.counters, ports.log),
    )


def test_a_move_after_a_refused_one_is_newer_whatever_its_salt() -> None:
    async def run() -> list[str]:
        server = await server_of("a", "b")
        mover = mover_of(server, ["zz", "aa", "mm"])
        for _ in range(3):
            assert (await mover.move("s", "b", damage=False)).outcome is Outcome.REFUSED
        return [message.attempt for message in server.wires["a"].of(Prepare)]

    attempts = virtual.run(run())
    assert len(attempts) == 3
    assert attempts == sorted(attempts)  # a source takes no attempt for new that is not greater than all before


async def lost(server: Server) -> None:
    await server.desk.ask(Lose(session="s", epoch=1, poll=0, copies_found=0))


async def taken_over(server: Server) -> None:
    await server.desk.fail_over(Failover(session="s", epoch=1, worker="b", incarnation=1, log_reaches=9))


def moved_while_the_source_dies(then: Callable[[Server], Awaitable[None]] | None) -> MoveReport:
    """Move a session whose worker dies when it is to prepare; a little later its row is what ``then`` makes of it."""

    async def run() -> MoveReport:
        server = await server_of("a", "b")
        mover = mover_of(server, ["zz"])

        def die(message: object) -> None:
            server.dies("a")
            mover.died("a")

        server.wires["a"].react = die
        moving = asyncio.create_task(mover.move("s", "b", damage=False))
        await asyncio.sleep(0.1)
        assert not moving.done()
        if then is not None:
            await then(server)
        return await moving

    return virtual.run(run())


@pytest.mark.parametrize("layout", [b"", b"x", Layout.of(capture({"number": 1}).manifest).to_bytes()[:-3]])
def test_a_source_that_describes_no_state_is_blamed_and_nothing_is_offered(layout: bytes) -> None:
    async def run() -> None:
        server, faults = await server_of("a", "b"), list[str]()
        mover = mover_of(server, ["x"], prepare_s=5.0, faults=faults)

        def react(asked: object) -> None:
            if isinstance(asked, Prepare):
                said = Prepared(
                    to="controller",
                    sender="a",
                    incarnation=1,
                    session="s",
                    attempt=asked.attempt,
                    epoch=1,
                    layout=layout,
                    environment=dict(ENVIRONMENT),
                    ticket=b"",
                    block_s=0.01,
                )
                mover.heard(said)

        server.wires["a"].react = react
        report = await mover.move("s", "b", damage=False)
        assert (report.outcome, report.reason, faults) == (Outcome.REFUSED, "bad_answer", [])
        assert report.detail.startswith("a has answered what is no answer: it describes no state (")
        assert server.wires["b"].of(Offer) == []

    virtual.run(run())


def test_a_session_whose_source_dies_before_the_start_is_lost_where_no_copy_is_left() -> None:
    made = moved_while_the_source_dies(lost)
    assert (made.outcome, made.reason, made.runs_at) == (Outcome.LOST, "lost", None)


def test_a_session_whose_source_dies_before_the_start_runs_where_a_copy_took_over() -> None:
    made = moved_while_the_source_dies(taken_over)
    assert (made.outcome, made.reason, made.runs_at) == (Outcome.REFUSED, "worker_gone", "b")


def test_a_session_whose_source_is_dead_is_in_doubt_while_its_row_names_no_other() -> None:
    made = moved_while_the_source_dies(None)
    assert (made.outcome, made.reason, made.runs_at) == (Outcome.IN_DOUBT, "worker_gone", None)


def test_a_session_is_in_doubt_exactly_while_its_row_has_an_attempt_that_nobody_conducts_or_a_dead_owner() -> None:
    async def states() -> list[SessionState]:
        record = SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False)
        row = Row(session="s", owner="a", incarnation=1, epoch=1)
        opened = replace(row, attempt=OpenedFor(attempt="00000001-x", destination="b", incarnation=1))
        found = [view(record, row), view(record, opened), view(record, row, owner_missing=True)]
        record.conducted = asyncio.get_running_loop().create_future()
        return [seen.state for seen in (*found, view(record, opened))]

    live, doubt, moving = SessionState.LIVE, SessionState.IN_DOUBT, SessionState.MOVING
    assert virtual.run(states()) == [live, doubt, doubt, moving]


def test_a_cancel_at_any_moment_ends_the_move_and_returns_its_report() -> None:
    async def run(first_s: float) -> tuple[MoveReport, MoveReport]:
        server = await server_of("a", "b")
        mover = mover_of(server, ["zz"], prepare_s=5.0)
        moving = asyncio.create_task(mover.move("s", "b", damage=False))
        await asyncio.sleep(first_s)
        cancelled = await mover.cancel("s")
        with pytest.raises(UserError, match="No move of s is under way"):
            await mover.cancel("s")
        return cancelled, await moving

    for first_s in (0.0, 0.02):
        cancelled, made = virtual.run(run(first_s))
        assert cancelled is made
        assert (made.outcome, made.reason, made.runs_at) == (Outcome.REFUSED, "cancelled", "a")


def test_an_attempt_that_both_ends_gave_up_while_the_ledger_was_silent_is_closed_when_it_works() -> None:
    async def run(*held: Copy) -> OpenedFor | None:
        server = await server_of("a", "b")
        server.workers.has_reported("b", 1)
        mover = mover_of(server, [])
        opened = OpenAttempt(session="s", attempt=ATTEMPT, epoch=1, destination="b", destination_incarnation=1)
        await server.desk.ask(opened)
        server.holds("b", *held)
        await mover.close_forgotten()
        row = server.desk.row("s")
        assert row is not None
        return row.attempt

    assert virtual.run(run()) is None
    assert virtual.run(run(copy_of("s", "freeing"))) is None
    assert virtual.run(run(copy_of("s", "shadow"))) is not None  # it may be in doubt: it asks again by itself


class LyingPath:
    """A try over a path that brought other bytes than were sent."""

    taken: ClassVar[list[str]] = []

    def __init__(self, plan: Plan, **_: object) -> None:
        self.plan = plan

    async def run(self) -> Ending:
        self.taken.append(self.plan.transport)
        return Ending(outcome=Outcome.ABORTED, reason="mismatch", detail="group 3 arrived damaged")


def test_a_path_that_lied_is_left_by_the_next_move_and_a_trial_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldmove.fleet.mover.Attempt", LyingPath)
    LyingPath.taken.clear()

    async def run() -> list[str]:
        server = await server_of("a", "b")
        mover = mover_of(server, [f"s{number}" for number in range(9)])
        await mover.move("s", "b", damage=True)
        for _ in range(3):
            await mover.move("s", "b", damage=False)
        return LyingPath.taken

    assert virtual.run(run()) == ["corrupting-shm"] * 3 + ["shm", "tcp", "tcp"]


def test_each_try_waits_until_the_destination_has_let_go_of_what_the_one_before_it_brought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> tuple[int, list[bool]]:
        server = await server_of("a", "b")
        free: list[bool] = []

        class LeavesSome(LyingPath):
            async def run(self) -> Ending:
                free.append(not server.workers.get("b").copies)
                server.holds("b", copy_of("s", "shadow"))
                asyncio.get_running_loop().call_later(1.0, server.holds, "b")
                return await super().run()

        monkeypatch.setattr("worldmove.fleet.mover.Attempt", LeavesSome)
        made = await mover_of(server, [f"s{number}" for number in range(9)]).move("s", "b", damage=True)
        return made.tries, free

    assert virtual.run(run()) == (3, [True] * 3)


def test_a_session_on_a_device_is_moved_through_host_memory_after_its_peer_path_lied_and_by_tcp_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("worldmove.fleet.mover.Attempt", LyingPath)
    LyingPath.taken.clear()

    async def run() -> list[str]:
        server = await server_of("a", "b")
        for name in ("a", "b"):
            hello = server.workers.get(name).hello
            assert hello is not None
            hello.rates.clear()
            hello.rates.update({f"{path}_bytes_per_s": 1e9 for path in ("tcp", "staged", "peer")})
        mover = mover_of(server, [f"s{number}" for number in range(9)], transport="peer")
        for _ in range(4):
            await mover.move("s", "b", damage=False)
        return LyingPath.taken

    assert virtual.run(run()) == ["peer", "staged", "tcp", "tcp"]


def test_what_an_end_gets_on_with_counts_for_the_try_that_it_is_of_and_for_no_other() -> None:
    async def run() -> list[int]:
        server = await server_of("a", "b")
        mover = mover_of(server, ["x"], prepare_s=1.0)
        moving = asyncio.create_task(mover.move("s", "b"))
        while not server.wires["a"].of(Prepare):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        (asked,) = server.wires["a"].of(Prepare)
        found = list[int]()
        for attempts in ((), ("another",), (asked.attempt,), ("another", asked.attempt)):
            mover.got_on(attempts)
            found.append(mover.num_steps("s"))
        await mover.cancel("s")
        await moving
        return [*found, mover.num_steps("s"), mover.num_steps("unknown")]

    assert virtual.run(run()) == [0, 0, 1, 2, 0, 0]
