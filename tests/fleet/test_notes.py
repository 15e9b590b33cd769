"""Notes in memory and in the ledger's file, and the history of moves that is made of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from worldmove.errors import LedgerError
from worldmove.fleet.history import History
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.notes import MemoryNotes, MoveNote, Notes, NoteStore, ServerNote, SessionNote, WorkerNote
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.fleet.tries import Plan
from worldmove.fleet.unfinished import outcome_of
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import OpenedFor, Row
from worldmove.move.strategy import pick

MOVE = MoveNote(
    number=1,
    session="s",
    attempt="1-x",
    source="a",
    destination="b",
    epoch=1,
    transport="t",
    strategy="c",
    started_at=2,
)
SESSION = SessionNote(name="s", seed=1, num_bytes=2, num_leaves=3, state_digest="d")
WORKER = WorkerNote(name="a", incarnation=3, pid=7, birth="boot:9")
SERVER_NOTE = ServerNote(life=5, engine="e", speech="x")
NoteT = TypeVar("NoteT", bound=msgspec.Struct)
REPORT = MoveReport(
    session="s",
    attempt="1-x",
    source="a",
    destination="b",
    outcome=Outcome.COMMITTED,
    reason="done",
    detail="",
    epoch=2,
    tries=1,
    transport="t",
    started_at=2.5,
    took_s=0.5,
    pause_s=0.01,
    phases=(PhaseTime(side="source", name="freeze", start_s=0.0, end_s=0.5),),
)
PLAN = Plan(
    session="s",
    epoch=1,
    attempt="1-x",
    nonce=b"",
    transport="t",
    strategy=pick(),
    source=WorkerRecord(name="a", incarnation=1),
    destination=WorkerRecord(name="b", incarnation=1),
)


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NoteStore]:
    if request.param == "memory":
        yield MemoryNotes()
        return
    ledger = open_ledger(LedgerConfig(path=tmp_path / "ledger.sqlite"))
    yield ledger
    ledger.close()


def test_what_is_noted_is_read_back_by_the_next_server(store: NoteStore) -> None:
    worker = WorkerNote(name="a", incarnation=3, pid=7, birth="boot:9")
    session = SessionNote(name="s", seed=1, num_bytes=2, num_leaves=3, state_digest="d", holders=(("a", 3), ("b", 1)))
    server, move = ServerNote(life=5, engine="e", speech="x"), replace_report(MOVE, REPORT)
    notes = Notes(store)
    notes.keep_server(server)
    notes.keep_worker(WorkerNote(name="a", incarnation=2))
    notes.keep_worker(worker)
    notes.keep_session(session)
    notes.keep_move(move)
    later = Notes(store)
    assert (later.server(), later.workers(), later.sessions()) == (server, (worker,), {"s": session})
    assert later.moves() == ((move,), {})
    later.drop_session("s")
    later.drop_session("s")
    later.drop_move(1)
    assert (later.sessions(), later.moves()) == ({}, ((), {}))


def replace_report(note: MoveNote, report: MoveReport) -> MoveNote:
    return msgspec.structs.replace(note, report=report)


class Full(MemoryNotes):
    full = False

    def keep(self, kind: str, key: str, value: str) -> None:
        if self.full:
            raise LedgerError("the disk is full")
        super().keep(kind, key, value)


def history_on(store: NoteStore, *, limit: int = 8, logged: list[str] | None = None) -> History:
    said = [] if logged is None else logged
    return History(Notes(store), limit=limit, log=lambda event, fields: said.append(event))


def test_a_later_server_knows_the_moves_that_ended_and_the_one_that_did_not(store: NoteStore) -> None:
    first = history_on(store)
    first.end(REPORT, first.begin(PLAN, 2.5))
    told = replace(REPORT, gap_s=0.25)
    first.amend(told)
    first.begin(replace_attempt("2-x"), 3.0)
    second = history_on(store)
    (unfinished,) = second.load()
    ended, open_one = second.reports()
    assert ended == told
    assert (unfinished.attempt, open_one.attempt, open_one.outcome) == ("2-x", "2-x", Outcome.IN_DOUBT)
    second.settle(unfinished.number, replace(REPORT, attempt="2-x"), final=True)
    third = history_on(store)
    assert third.load() == ()
    assert [report.outcome for report in third.reports()] == [Outcome.COMMITTED] * 2


def replace_attempt(attempt: str) -> Plan:
    return replace(PLAN, attempt=attempt)


def test_the_oldest_moves_make_room(store: NoteStore) -> None:
    history = history_on(store, limit=2)
    for number in range(4):
        history.end(replace(REPORT, attempt=f"{number}"), history.begin(replace_attempt(f"{number}"), 1.0))
    later = history_on(store, limit=2)
    later.load()
    assert [report.attempt for report in later.reports()] == ["2", "3"]
    assert later.begin(PLAN, 1.0) == 5


@pytest.mark.parametrize("at_s", [-1.9e9, -1e-9, 0.0, 1.7e9, 1e11, 1e300])
def test_wherever_the_clock_stands_a_move_is_noted_so_that_a_later_server_reads_it(
    store: NoteStore, at_s: float
) -> None:
    history = history_on(store)
    history.begin(PLAN, at_s)
    history.end(replace(REPORT, started_at=at_s), history.begin(replace_attempt("2-x"), at_s))
    logged = list[str]()
    later = history_on(store, logged=logged)
    assert [note.attempt for note in later.load()] == ["1-x"]
    assert later.reports()[1].started_at == at_s
    assert logged == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1, 2",
        msgspec.json.encode(replace_report(MOVE, REPORT)).decode().replace('"number":1', '"number":-1'),
        msgspec.json.encode(replace_report(MOVE, REPORT)).decode().replace('"started_at":2', '"started_at":-2'),
        msgspec.json.encode(replace_report(MOVE, REPORT)).decode().replace('"committed"', '"won"'),
        msgspec.json.encode(MOVE).decode().replace('"session"', '"world"'),
    ],
)
def test_a_move_that_cannot_be_read_is_left_out_and_said_and_makes_room_in_its_turn(
    store: NoteStore, text: str
) -> None:
    first = history_on(store, limit=2)
    for name in ("1-x", "2-x"):
        first.end(replace(REPORT, attempt=name), first.begin(replace_attempt(name), 1.0))
    store.keep("move", f"{2:016d}", text)
    logged = list[str]()
    later = history_on(store, limit=2, logged=logged)
    assert later.load() == ()
    assert [report.attempt for report in later.reports()] == ["1-x"]
    assert logged == ["move_not_read"]
    for number in (3, 4):
        assert later.begin(PLAN, 1.0) == number
        later.end(replace(REPORT, attempt=f"{number}-x"), number)
    assert history_on(store, logged=logged).load() == ()
    assert logged == ["move_not_read"]


UNREADABLE: dict[str, Callable[[Notes], None]] = {
    "a move before 1970": lambda notes: notes.keep_move(changed(MOVE, started_at=-1.0)),
    "a move at no time": lambda notes: notes.keep_move(changed(MOVE, started_at=float("nan"))),
    "a move in no epoch": lambda notes: notes.keep_move(changed(MOVE, epoch=-1)),
    "a move of nobody": lambda notes: notes.keep_move(changed(MOVE, session="")),
    "a report of no duration": lambda notes: notes.keep_move(
        changed(MOVE, report=replace(REPORT, took_s=float("inf")))
    ),
    "a report that is no text": lambda notes: notes.keep_move(changed(MOVE, report=replace(REPORT, detail="\ud800"))),
    "a session of no size": lambda notes: notes.keep_session(changed(SESSION, num_bytes=-1)),
    "a session too large": lambda notes: notes.keep_session(changed(SESSION, num_bytes=1 << 62)),
    "a session whose digest is no text": lambda notes: notes.keep_session(changed(SESSION, state_digest="\udfff")),
    "a session with a holder of no name": lambda notes: notes.keep_session(changed(SESSION, holders=(("", 1),))),
    "a worker of no process": lambda notes: notes.keep_worker(changed(WORKER, pid=0)),
    "a worker of no incarnation": lambda notes: notes.keep_worker(changed(WORKER, incarnation=-1)),
    "a server before all": lambda notes: notes.keep_server(changed(SERVER_NOTE, life=-1)),
    "a server with no key": lambda notes: notes.keep_server(changed(SERVER_NOTE, receipt_key="x")),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_nothing_is_kept_that_could_not_be_read(store: NoteStore, what: str) -> None:
    notes = Notes(store)
    notes.keep_move(MOVE)
    notes.keep_session(SESSION)
    notes.keep_worker(WORKER)
    notes.keep_server(SERVER_NOTE)
    with pytest.raises(LedgerError, match="cannot be noted"):
        UNREADABLE[what](notes)
    assert (notes.server(), notes.workers(), notes.sessions()) == (SERVER_NOTE, (WORKER,), {"s": SESSION})
    assert notes.moves() == ((MOVE,), {})


def changed(note: NoteT, **fields: Any) -> NoteT:
    return msgspec.structs.replace(note, **fields)


def test_every_try_of_a_move_is_one_move(store: NoteStore) -> None:
    history = history_on(store)
    number = history.begin(PLAN, 1.0)
    assert history.begin(replace_attempt("2-x"), 1.0, number) == number
    (unfinished,) = history_on(store).load()
    assert unfinished.attempt == "2-x"


def test_an_end_that_cannot_be_noted_is_said_and_left_to_the_next_server() -> None:
    store, logged = Full(), list[str]()
    history = history_on(store, logged=logged)
    number = history.begin(PLAN, 1.0)
    store.full = True
    history.end(REPORT, number)
    assert history.reports() == (REPORT,)
    assert logged == ["move_not_noted"]
    assert len(history_on(store).load()) == 1


ROW = Row(session="s", owner="a", incarnation=1, epoch=1, last_attempt="1-x")
GRANTED = replace(ROW, owner="b", epoch=2, granted_by="1-x")
FAILED_OVER = replace(ROW, owner="a", epoch=3, granted_by="failover")
RECLAIMED = replace(ROW, owner="a", epoch=3, granted_by="reclaim")


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ((GRANTED, FAILED_OVER), Outcome.COMMITTED),
        ((GRANTED, RECLAIMED), Outcome.ABORTED),
        ((GRANTED, RECLAIMED, replace(FAILED_OVER, epoch=4)), Outcome.ABORTED),
        ((GRANTED, RECLAIMED, replace(RECLAIMED, owner="b", epoch=4)), Outcome.ABORTED),
        ((GRANTED, FAILED_OVER, replace(RECLAIMED, epoch=4)), Outcome.COMMITTED),
        ((replace(GRANTED, granted_by="failover"), FAILED_OVER), Outcome.ABORTED),
        ((replace(GRANTED, session="t"), FAILED_OVER), Outcome.ABORTED),
        ((GRANTED, replace(FAILED_OVER, lost=True)), Outcome.COMMITTED),
    ],
)
def test_that_a_move_was_granted_is_known_to_a_later_server_though_later_epochs_followed(
    store: NoteStore, rows: tuple[Row, ...], outcome: Outcome
) -> None:
    history = history_on(store)
    history.begin(PLAN, 1.0)
    for row in rows:
        history.row_changed(row)
        history.keep_marks()
    (unfinished,) = history_on(store).load()
    lives_at = None if rows[-1].lost else "a"
    assert outcome_of(unfinished, rows[-1], lives_at, may_commit=False).outcome is outcome


def test_a_mark_that_cannot_be_kept_is_kept_with_the_next() -> None:
    store, logged = Full(), list[str]()
    history = history_on(store, logged=logged)
    number = history.begin(PLAN, 1.0)
    store.full = True
    assert history.row_changed(GRANTED)
    history.keep_marks()
    assert logged == ["move_not_noted"]
    known = history.unfinished(number)
    assert known is not None
    assert known.granted
    store.full = False
    assert history.row_changed(replace(ROW, session="t"))
    history.keep_marks()
    assert [note.granted for note in history_on(store).load()] == [True]
    assert not history.row_changed(GRANTED)


@pytest.mark.parametrize(
    ("row", "lives_at", "may_commit", "outcome"),
    [
        (GRANTED, "b", False, Outcome.COMMITTED),
        (GRANTED, None, False, Outcome.COMMITTED),
        (ROW, "a", False, Outcome.ABORTED),
        (ROW, "a", True, Outcome.IN_DOUBT),
        (ROW, None, False, Outcome.IN_DOUBT),
        (replace(ROW, attempt=OpenedFor(attempt="1-x", destination="b", incarnation=1)), "a", False, Outcome.IN_DOUBT),
        (replace(ROW, attempt=OpenedFor(attempt="2-x", destination="b", incarnation=1)), "a", False, Outcome.ABORTED),
        (replace(ROW, lost=True), None, False, Outcome.LOST),
        (replace(ROW, owner="c", epoch=2, granted_by="failover"), "c", True, Outcome.ABORTED),
    ],
)
def test_a_move_whose_server_ended_in_its_middle_ended_as_the_row_says(
    row: Row, lives_at: str | None, may_commit: bool, outcome: Outcome
) -> None:
    report = outcome_of(MOVE, row, lives_at, may_commit=may_commit)
    assert (report.outcome, report.reason, report.epoch, report.runs_at) == (
        outcome,
        "server_ended",
        row.epoch,
        lives_at,
    )
