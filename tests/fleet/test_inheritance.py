"""A controller that begins with what an earlier one has left: rows, notes, workers that say what they hold."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.fleet.fakes import SilentGateway, copy_of
from tests.fleet.test_adoption import FakeHosts, hello_of
from tests.move import virtual
from tests.worker.planted import PlantedError
from worldmove.errors import LedgerError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.containment import AGAIN_S
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.notes import MemoryNotes, MoveNote, Notes, SessionNote, WorkerNote
from worldmove.fleet.ports import Owner
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionState
from worldmove.move.ledger_messages import CommitAttempt, OpenAttempt
from worldmove.move.ledger_messages import Opened as AttemptOpened
from worldmove.move.ledger_row import BY_FAILOVER, OpenedFor, Row
from worldmove.worker.messages import (
    BlockDone,
    Change,
    Close,
    Copies,
    Copy,
    Held,
    LedgerAsk,
    Left,
    Refused,
    Reported,
    StateDone,
    TakeOver,
)

ROW = Row(session="s", owner="a", incarnation=4, epoch=3, shown=True)
BLOCK = BlockDone(session="s", epoch=3, block=4, frames=b"", frame_sha256=(), notes=(), compute_s=0.0)


def noted(name: str, *holders: tuple[str, int], closing: bool = False) -> SessionNote:
    return SessionNote(
        name=name, seed=9, num_bytes=32, num_leaves=4, state_digest="d", holders=holders, closing=closing
    )


@dataclass
class Later:
    """A controller over what was left, its gateway, and the workers ``a`` and ``b`` that live on."""

    controller: Controller
    gateway: SilentGateway
    hosts: FakeHosts
    notes: Notes
    ledger: MemoryLedger
    logged: list[tuple[str, dict[str, object]]]

    def says(self, worker: str, *copies: Copy) -> None:
        """A worker makes its link, and says what it holds."""
        say = self.hosts.adopted[worker]
        say(msgspec.structs.replace(hello_of(worker, 4), copies=copies))
        for copy in copies:
            say(Held(session=copy.session, block=5, changes=(Change(number=1, key="up", down=True),)))
            say(Left(session=copy.session, block=BLOCK))
        say(Reported(worker=worker, incarnation=4))

    def told(self, event: str) -> list[object]:
        return [said for what, said in self.gateway.told if what == event]

    def outcome(self) -> Outcome:
        (report,) = self.controller.moves()
        return report.outcome

    def state(self, session: str = "s") -> SessionState:
        return next(view.state for view in self.controller.sessions() if view.name == session)


def left_behind(
    work: Callable[[Later], Awaitable[None]],
    *rows: Row,
    notes: tuple[SessionNote | MoveNote, ...] = (),
    alive: tuple[int, ...] = (1, 2),
    fails: tuple[str, ...] = (),
    unreadable: str = "",
) -> None:
    """Begin with these rows and notes, and with workers ``a`` (pid 1) and ``b`` (pid 2) of which these live.

    ``fails``: tasks that fail on the way. ``unreadable``: the text of another move's note.
    """

    async def run() -> None:
        store, ledger, hosts = MemoryNotes(), MemoryLedger(), FakeHosts(alive=alive)
        known, failed = Notes(store), list[str]()
        logged: list[tuple[str, dict[str, object]]] = []

        def log(event: str, fields: dict[str, object]) -> None:
            logged.append((event, fields))
            if event == "task_failed":
                failed.append(str(fields["task"]))

        for name, pid in (("a", 1), ("b", 2)):
            known.keep_worker(WorkerNote(name=name, incarnation=4, pid=pid, birth="b"))
        for row in rows:
            await ledger.create(row)
        for note in notes:
            (known.keep_session if isinstance(note, SessionNote) else known.keep_move)(note)  # type: ignore[arg-type]
        if unreadable:
            store.keep("move", f"{9:016d}", unreadable)
        ports = ControllerPorts(
            hosts=hosts,
            ledger=ledger,
            notes=store,
            wall_clock=lambda: 0.0,
            salt=lambda: "x",
            nonce=lambda: bytes(32),
            counters=Counters(CollectorRegistry()),
            log=log,
        )
        controller, gateway = Controller(FleetConfig(workers=("a", "b"), poll_s=0.05), ports), SilentGateway()
        controller.attach(gateway)
        await controller.start()
        try:
            later = Later(
                controller=controller, gateway=gateway, hosts=hosts, notes=known, ledger=ledger, logged=logged
            )
            await asyncio.sleep(0.01)
            await work(later)
        finally:
            await controller.stop()
        assert tuple(failed) == fails

    virtual.run(run())


def test_a_session_goes_on_once_its_owner_and_every_noted_holder_have_reported() -> None:
    async def work(later: Later) -> None:
        assert later.state() is SessionState.IN_DOUBT
        assert (later.told("may_show"), later.told("may_close"), later.told("holders")) == ([], [], [])
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        await asyncio.sleep(0.01)
        assert later.state() is SessionState.LIVE
        assert (later.told("left"), later.told("held"), later.told("may_show")) == ([(5, 7, True)], [5], [True])
        assert later.told("take") == [Left(session="s", block=BLOCK)]
        assert later.told("may_close") == []
        later.says("b", Copy(session="s", phase="retired", epoch=2, block=4, left=4))
        await asyncio.sleep(0.3)
        assert later.told("may_close") == ["s"]
        assert later.told("holders") == [("a", "b")]
        assert later.notes.sessions()["s"].holders == (("a", 4), ("b", 4))

    left_behind(work, ROW, notes=(noted("s", ("a", 4), ("b", 4)),))


def test_a_session_whose_return_fails_as_nobody_foresaw_returns_a_little_later() -> None:
    """Else it would wait for ever, and be neither lost nor gone on with."""

    def fail(session: str, *, owner_lives: bool) -> None:
        del later_gateway[0].may_show  # the next time it does not
        raise PlantedError

    later_gateway: list[SilentGateway] = []

    async def work(later: Later) -> None:
        later_gateway.append(later.gateway)
        later.gateway.may_show = fail  # type: ignore[method-assign]
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        await asyncio.sleep(0.3)
        assert (later.told("may_show"), later.told("may_close")) == ([], [])
        await asyncio.sleep(AGAIN_S)
        assert (later.told("may_show"), later.told("may_close")) == ([True], ["s"])

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),), fails=("resume",))


def test_of_what_a_dead_process_had_sent_its_blocks_and_copies_count_no_more_and_what_it_knew_does() -> None:
    async def work(later: Later) -> None:
        later.hosts.on_gone["a"](None)
        await asyncio.sleep(0.01)
        assert (later.told("may_show"), later.told("may_close")) == ([False], ["s"])
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        later.hosts.adopted["a"](BLOCK)
        assert [worker.copies for worker in later.controller.workers()] == [(), ()]
        assert (later.told("take"), later.told("held"), later.told("left")) == (
            [Left(session="s", block=BLOCK)],
            [5],
            [],
        )

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),))


def test_what_was_being_closed_is_closed_and_what_was_never_named_is_too() -> None:
    async def work(later: Later) -> None:
        assert later.controller.sessions() == ()
        assert later.notes.sessions() == {}
        assert await later.ledger.rows() == ()
        later.says("a", copy_of("closing", "live"), copy_of("opening", "live"), copy_of("old~r1", "throwaway"))
        names = ("closing", "opening", "old~r1")
        assert later.hosts.wires["a"].of(Close) == [Close(session=name) for name in names]
        said = [fields for event, fields in later.logged if event == "copy_of_no_session"]
        assert said == [{"session": name, "worker": "a"} for name in names]

    left_behind(
        work, replace(ROW, session="closing"), notes=(noted("closing", ("a", 4), closing=True), noted("opening"))
    )


MOVE = MoveNote(
    number=3,
    session="s",
    attempt="00000001-x",
    source="a",
    destination="b",
    epoch=3,
    transport="shm",
    strategy="boundary copy",
    started_at=1.0,
)
OPENED = replace(
    ROW, attempt=OpenedFor(attempt="00000001-x", destination="b", incarnation=4), last_attempt="00000001-x"
)


def test_one_move_that_cannot_be_read_keeps_no_server_from_its_sessions_and_the_other_moves() -> None:
    async def work(later: Later) -> None:
        assert [name for name, _ in later.logged].count("move_not_read") == 1
        assert [session.name for session in later.controller.sessions()] == ["s"]
        assert [report.attempt for report in later.controller.moves()] == [MOVE.attempt]

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE), unreadable='{"number":9,"started_at":-1.9e9}')


def test_an_attempt_that_nobody_conducts_is_closed_and_its_move_is_aborted_once_its_destination_holds_nothing() -> None:
    async def work(later: Later) -> None:
        row = await later.ledger.row("s")
        assert row is not None
        assert row.attempt is None
        assert later.outcome() is Outcome.IN_DOUBT  # it may be in doubt there
        later.says("b", copy_of("s", "shadow"))
        await asyncio.sleep(0.01)
        assert later.outcome() is Outcome.IN_DOUBT
        later.hosts.adopted["b"](Copies(worker="b", incarnation=4, copies=(), slots_free=3, slots_quarantined=0))
        await asyncio.sleep(0.01)
        (report,) = later.controller.moves()
        assert (report.outcome, report.reason, report.runs_at) == (Outcome.ABORTED, "server_ended", "a")

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE))


def test_a_destination_in_doubt_whose_source_dies_after_the_close_is_granted_its_commit_and_the_move_says_so() -> None:
    async def work(later: Later) -> None:
        later.says("a", Copy(session="s", phase="frozen", epoch=3, block=5, left=5))
        later.says("b", Copy(session="s", phase="shadow", epoch=0, block=5, left=5))
        await asyncio.sleep(0.3)
        assert later.outcome() is Outcome.IN_DOUBT
        later.hosts.on_gone["a"](None)
        asked = CommitAttempt(session="s", attempt="00000001-x", epoch=3, boundary=5, worker="b", incarnation=4)
        later.hosts.adopted["b"](LedgerAsk(worker="b", incarnation=4, request=1, operation=asked))
        await asyncio.sleep(0.3)
        assert later.controller.owner("s") == Owner(worker="b", incarnation=4, epoch=4)
        assert later.outcome() is Outcome.COMMITTED

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE))


NOTHING = Copies(worker="b", incarnation=4, copies=(), slots_free=3, slots_quarantined=0)
ENDS: dict[str, Callable[[Later], None]] = {
    "frees its copy": lambda later: later.hosts.adopted["b"](NOTHING),
    "was told to close": lambda later: later.says("b", Copy(session="s", phase="freeing", epoch=0, block=5, left=5)),
    "dies": lambda later: later.hosts.on_gone["b"](None),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("owner_dies", [True, False])
def test_a_commit_that_waits_behind_a_slow_question_is_waited_for_whatever_has_become_of_who_has_asked(
    how: str, *, owner_dies: bool
) -> None:
    """It is granted where the owner has died by then: nobody is told before that the move was aborted."""

    async def work(later: Later) -> None:
        later.says("a", Copy(session="s", phase="live", epoch=3, block=5, left=5))
        later.says("b", Copy(session="s", phase="shadow", epoch=0, block=5, left=5))
        await asyncio.sleep(0.3)
        asked = CommitAttempt(session="s", attempt="00000001-x", epoch=3, boundary=5, worker="b", incarnation=4)
        busy = later.controller._books.desk._lock  # with another session's question
        await busy.acquire()
        later.hosts.adopted["b"](LedgerAsk(worker="b", incarnation=4, request=1, operation=asked))
        ENDS[how](later)
        await asyncio.sleep(0.6)
        assert later.outcome() is Outcome.IN_DOUBT
        if owner_dies:
            later.hosts.on_gone["a"](None)
        busy.release()
        later.controller._books.workers.has_reported("b", 5)  # whoever is started in its place
        await asyncio.sleep(0.6)
        row = later.controller._books.desk.row("s")
        assert row is not None
        assert (later.outcome() is Outcome.COMMITTED) == (row.granted_by == "00000001-x") == owner_dies
        assert (later.outcome() is Outcome.ABORTED) == (not owner_dies)

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE))


def test_a_commit_that_comes_from_a_dead_destination_is_not_granted() -> None:
    """Its move is told to be aborted as soon as it is dead, and nobody is left to take the session up."""

    async def work(later: Later) -> None:
        later.says("a", Copy(session="s", phase="live", epoch=3, block=5, left=5))
        later.says("b", Copy(session="s", phase="shadow", epoch=0, block=5, left=5))
        later.hosts.on_gone["b"](None)
        await asyncio.sleep(0.6)
        assert later.outcome() is Outcome.ABORTED
        later.hosts.on_gone["a"](None)
        asked = CommitAttempt(session="s", attempt="00000001-x", epoch=3, boundary=5, worker="b", incarnation=4)
        later.hosts.adopted["b"](LedgerAsk(worker="b", incarnation=4, request=1, operation=asked))
        await asyncio.sleep(0.3)
        row = later.controller._books.desk.row("s")
        assert row is not None
        assert row.granted_by != "00000001-x"
        assert later.outcome() is Outcome.ABORTED

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE))


def test_a_move_that_a_dead_server_saw_granted_is_noted_before_a_later_epoch_hides_it() -> None:
    async def work(later: Later) -> None:
        assert later.notes.moves()[0][0].granted or later.outcome() is Outcome.COMMITTED

    granted = replace(ROW, owner="b", epoch=4, granted_by="00000001-x", last_attempt="00000001-x")
    left_behind(work, granted, notes=(noted("s", ("b", 4)), MOVE))


def test_a_move_of_another_server_never_closes_one_of_this_ones() -> None:
    async def work(later: Later) -> None:
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        later.says("b", copy_of("s", "shadow"))
        await asyncio.sleep(0.3)
        new = OpenAttempt(session="s", attempt="00000002-y", epoch=3, destination="b", destination_incarnation=4)
        assert isinstance(await later.controller.ask(new), AttemptOpened)
        await asyncio.sleep(0.3)
        row = await later.ledger.row("s")
        assert row is not None
        assert row.attempt is not None
        assert row.attempt.attempt == "00000002-y"

    left_behind(work, OPENED, notes=(noted("s", ("a", 4)), MOVE))


def test_an_owner_that_slept_and_was_replaced_is_told_so_by_the_next_server_though_it_sends_no_block() -> None:
    async def work(later: Later) -> None:
        later.says("b", Copy(session="s", phase="live", epoch=2, block=4, left=4))
        assert later.hosts.wires["b"].of(Refused) == [Refused(session="s", epoch=3)]
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        assert later.hosts.wires["a"].of(Refused) == []

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),))


def test_a_copy_of_a_lost_session_is_let_go_when_its_worker_is_heard_of_again() -> None:
    async def work(later: Later) -> None:
        later.says("b", Copy(session="s", phase="retired", epoch=2, block=4, left=4))
        assert later.hosts.wires["b"].of(Close) == [Close(session="s")]

    left_behind(work, replace(ROW, lost=True), notes=(noted("s"),))


def test_a_dead_owner_without_another_copy_is_lost_only_when_every_living_worker_has_said_what_it_holds() -> None:
    async def work(later: Later) -> None:
        await asyncio.sleep(0.3)
        assert later.told("lost") == []
        assert later.state() is SessionState.IN_DOUBT

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),), alive=(2,))


def test_an_owner_that_reports_no_copy_is_taken_as_gone_though_its_worker_lives() -> None:
    async def work(later: Later) -> None:
        later.says("a", Copy(session="s", phase="live", epoch=3, block=7, left=5))
        later.says("b", Copy(session="s", phase="retired", epoch=2, block=4, left=4))
        await asyncio.sleep(0.1)
        assert later.state() is SessionState.LIVE
        later.hosts.adopted["a"](Copies(worker="a", incarnation=4, copies=(), slots_free=3, slots_quarantined=0))
        await asyncio.sleep(0.1)
        assert later.controller.owner("s") == Owner(worker="b", incarnation=4, epoch=4)

    left_behind(work, ROW, notes=(noted("s", ("a", 4), ("b", 4)),))


def test_a_copy_that_was_granted_a_session_and_lacks_lists_of_what_was_shown_since_cannot_go_on_from_there() -> None:
    async def work(later: Later) -> None:
        later.gateway.block, later.gateway.reaches = 7, 4
        retired = Copy(session="s", phase="retired", epoch=2, block=4, left=4)
        later.says("b", retired)
        later.says("a")
        await asyncio.sleep(0.02)
        assert dict.fromkeys(later.told("may_show")) == {False: None}
        for worker, copies in (("a", ()), ("b", (retired,))):
            answer = Copies(worker=worker, incarnation=4, copies=copies, slots_free=2, slots_quarantined=0, poll=1)
            later.hosts.adopted[worker](answer)
        await asyncio.sleep(0.1)
        assert later.state() is SessionState.LOST
        assert later.hosts.wires["b"].of(TakeOver) == []
        assert later.hosts.wires["b"].of(Close) == [Close(session="s")]

    granted = replace(ROW, owner="b", shown=False, granted_by=BY_FAILOVER)
    left_behind(work, granted, notes=(noted("s", ("a", 4), ("b", 4)),))


def test_a_session_that_is_closed_while_its_worker_cannot_hear_of_it_is_closed_when_it_can() -> None:
    async def work(later: Later) -> None:
        playing = Copy(session="s", phase="live", epoch=3, block=7, left=5)
        later.says("a", playing)
        later.says("b")
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(later.controller.close("s"))
        await asyncio.sleep(0.01)
        assert later.hosts.wires["a"].of(Close) == [Close(session="s")]
        later.says("a", playing)  # the link is another, and that word was lost with the old one
        assert later.hosts.wires["a"].of(Close) == [Close(session="s"), Close(session="s")]
        later.hosts.adopted["a"](Copies(worker="a", incarnation=4, copies=(), slots_free=3, slots_quarantined=0))
        await closing
        assert later.controller.sessions() == ()

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),))


def test_a_session_that_was_lost_stays_lost() -> None:
    async def work(later: Later) -> None:
        assert later.state() is SessionState.LOST
        assert len(later.told("lost")) == 1

    left_behind(work, replace(ROW, lost=True), notes=(noted("s"),))


def test_a_clean_end_leaves_no_session_to_the_next_server() -> None:
    kept: list[Later] = []

    async def work(later: Later) -> None:
        kept.append(later)

    left_behind(work, ROW, notes=(noted("s", ("a", 4)),))
    (later,) = kept
    assert later.hosts.closed
    assert virtual.run(later.ledger.rows()) == ()
    assert later.notes.sessions() == {}


def test_a_server_that_cannot_begin_leaves_the_workers_that_it_found_alone() -> None:
    class Full(MemoryLedger):
        async def forget(self, session: str) -> None:
            raise LedgerError("the disk is full")

    async def run() -> bool:
        store, ledger, hosts = MemoryNotes(), Full(), FakeHosts(alive=(1,))
        Notes(store).keep_worker(WorkerNote(name="a", incarnation=4, pid=1, birth="b"))
        await ledger.create(ROW)  # without a note: to be forgotten, which fails
        ports = ControllerPorts(
            hosts=hosts,
            ledger=ledger,
            notes=store,
            wall_clock=lambda: 0.0,
            salt=lambda: "x",
            nonce=lambda: bytes(32),
            counters=Counters(CollectorRegistry()),
            log=lambda event, fields: None,
        )
        controller = Controller(FleetConfig(workers=("a",)), ports)
        controller.attach(SilentGateway())
        try:
            await controller.start()
        except LedgerError:
            await controller.stop()
        return hosts.closed

    assert virtual.run(run()) is False


def test_where_a_world_was_left_by_deaths_is_known_to_every_server_after() -> None:
    async def work(later: Later) -> None:
        assert later.told("forks") == [(3,)]
        later.controller.fork("s", 7)
        assert later.notes.sessions()["s"].forks == (3, 7)

    left_behind(work, ROW, notes=(msgspec.structs.replace(noted("s", ("a", 4)), forks=(3,)),))


def test_how_old_a_kept_snapshot_is_is_known_from_what_the_workers_say_before_anybody_watches_again() -> None:
    async def work(later: Later) -> None:
        later.gateway.block = None  # nobody has come back: the gateway does not know what the client has
        later.says("a", Copy(session="s", phase="live", epoch=3, block=9, left=8))
        later.says("b", Copy(session="s", phase="kept", epoch=3, block=5, left=5))
        await asyncio.sleep(0.3)
        (view,) = later.controller.sessions()
        assert (view.keeper, view.kept_block, view.kept_age_blocks) == ("b", 5, 3)
        later.gateway.block = 11
        (view,) = later.controller.sessions()
        assert view.kept_age_blocks == 6

    left_behind(work, ROW, notes=(noted("s", ("a", 4), ("b", 4)),))


def test_a_session_has_as_many_leaves_as_its_owner_has_last_accounted_for_and_nobody_elses_word_counts() -> None:
    def account(epoch: int, *paths: str) -> StateDone:
        digests = bytes(8 * len(paths))
        return StateDone(session="s", epoch=epoch, block=9, state_digest="d", paths=paths, leaf_digests=digests)

    async def work(later: Later) -> None:
        def num_leaves() -> int:
            return later.controller.sessions()[0].num_leaves

        later.says("a", Copy(session="s", phase="live", epoch=3, block=9, left=8))
        later.says("b", Copy(session="s", phase="retired", epoch=2, block=4, left=4))
        await asyncio.sleep(0.3)
        assert num_leaves() == 4
        later.hosts.adopted["a"](account(3, "x", "y", "z", "new", "newer"))
        assert num_leaves() == 5
        later.hosts.adopted["b"](account(2, "x"))
        later.hosts.adopted["b"](account(3, "x"))
        assert num_leaves() == 5
        later.hosts.adopted["a"](account(3, "x", "y"))
        assert num_leaves() == 2

    left_behind(work, ROW, notes=(noted("s", ("a", 4), ("b", 4)),))
