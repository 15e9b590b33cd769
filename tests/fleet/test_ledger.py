"""The ledger in SQL and its fake: one suite for both, then what only a file can get wrong."""

import asyncio
import errno
import os
import socket
import sqlite3
import stat
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sql

from worldmove.errors import LedgerError
from worldmove.fleet.ledger import SCHEMA_VERSION, Durability, LedgerConfig, SqlLedger, open_ledger
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.ledger_place import BESIDE
from worldmove.move.ledger_rules import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Denied,
    Done,
    Facts,
    Ledger,
    MarkShown,
    OpenAttempt,
    Opened,
    OpenedFor,
    Operation,
    Row,
    Yours,
    attempt_id,
)

T = TypeVar("T")
A1 = attempt_id(1, "aa")
ROW = Row(session="s", owner="A", incarnation=1, epoch=1)
OPEN = OpenAttempt(session="s", attempt=A1, epoch=1, destination="B", destination_incarnation=7)
COMMIT = CommitAttempt(session="s", attempt=A1, epoch=1, boundary=3, worker="B", incarnation=7)
CLOSE = CloseAttempt(session="s", attempt=A1, epoch=1, worker="A", incarnation=1, boundary=3)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def answer(ledger: Ledger, operation: Operation, facts: Facts) -> Answer | None:
    """Put an operation to a ledger, whose ruling is the row as it is afterwards, and an answer."""
    row, told = run(ledger.ask(operation, facts))
    assert row == run(ledger.row(operation.session))
    return told


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture(params=["memory", "sql in memory", "sql on disk"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    opened = open_ledger(LedgerConfig(path=path if "disk" in request.param else None))
    yield opened
    opened.close()


# one suite for all


def test_a_created_row_is_read_back_as_it_was(ledger: Ledger) -> None:
    row = Row(
        session="s",
        owner="A",
        incarnation=3,
        epoch=9,
        shown=True,
        attempt=OpenedFor(attempt=A1, destination="B", incarnation=2),
        granted_by="failover",
        last_attempt=A1,
        lost=True,
    )
    assert run(ledger.create(row)) is True
    assert run(ledger.row("s")) == row


def test_a_session_has_one_row(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    assert run(ledger.create(replace(ROW, owner="B"))) is False
    assert run(ledger.row("s")) == ROW


def test_rows_come_in_the_order_of_their_names(ledger: Ledger) -> None:
    for name in ("b", "c", "a"):
        run(ledger.create(replace(ROW, session=name)))
    assert [row.session for row in run(ledger.rows())] == ["a", "b", "c"]


def test_an_unknown_session_has_no_row_and_nothing_can_be_asked_of_it(ledger: Ledger) -> None:
    assert run(ledger.row("s")) is None
    assert answer(ledger, OPEN, Facts()) == Denied(session="s", reason="unknown_session")


def test_a_forgotten_session_is_gone_and_may_be_forgotten_again(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    run(ledger.forget("s"))
    run(ledger.forget("s"))
    assert run(ledger.rows()) == ()


def test_a_move_goes_through_the_ledger(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    assert answer(ledger, OPEN, Facts()) == Opened(session="s", attempt=A1)
    assert answer(ledger, COMMIT, Facts()) == Yours(session="s", epoch=2)
    assert answer(ledger, COMMIT, Facts()) == Yours(session="s", epoch=2)
    assert answer(ledger, MarkShown(session="s", epoch=2), Facts()) == Done(session="s", epoch=2)
    row = run(ledger.row("s"))
    assert row == Row(session="s", owner="B", incarnation=7, epoch=2, shown=True, granted_by=A1, last_attempt=A1)


def test_a_closed_attempt_stays_closed(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    run(ledger.ask(OPEN, Facts()))
    assert answer(ledger, CLOSE, Facts()) == Closed(session="s", attempt=A1)
    owner_answers = Facts(owner="A", incarnation=1, epoch=1, owner_gone=False)
    assert answer(ledger, COMMIT, owner_answers) == Closed(session="s", attempt=A1)


def test_no_answer_yet_changes_nothing(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    run(ledger.ask(OPEN, Facts()))
    run(ledger.ask(CLOSE, Facts()))
    before = run(ledger.row("s"))
    assert answer(ledger, COMMIT, Facts()) is None
    assert run(ledger.row("s")) == before


def test_sessions_do_not_touch_each_other(ledger: Ledger) -> None:
    run(ledger.create(ROW))
    run(ledger.create(replace(ROW, session="t")))
    run(ledger.ask(OPEN, Facts()))
    run(ledger.ask(COMMIT, Facts()))
    assert run(ledger.row("t")) == replace(ROW, session="t")


# what only a file can get wrong


def _opened(path: Path, **config: Any) -> SqlLedger:
    return open_ledger(LedgerConfig(path=path, busy_s=0.05, **config))


@pytest.fixture
def written(path: Path) -> Path:
    """A ledger's file with one row, closed."""
    ledger = _opened(path)
    run(ledger.create(ROW))
    ledger.close()
    return path


def test_what_was_answered_is_there_for_the_next_process(written: Path) -> None:
    ledger = _opened(written)
    assert run(ledger.rows()) == (ROW,)
    ledger.close()


def test_what_was_answered_is_there_though_nobody_closed_the_file(path: Path, tmp_path: Path) -> None:
    ledger = _opened(path)
    run(ledger.create(ROW))
    run(ledger.ask(OPEN, Facts()))
    for file in tmp_path.iterdir():  # as a process that was killed leaves it: the log is not in the file yet
        (tmp_path / file.name.replace("ledger", "copy")).write_bytes(file.read_bytes())
    ledger.close()
    copy = _opened(tmp_path / "copy.db")
    assert run(copy.row("s")) == replace(
        ROW, attempt=OpenedFor(attempt=A1, destination="B", incarnation=7), last_attempt=A1
    )
    copy.close()


@pytest.mark.parametrize("durability", list(Durability))
def test_the_file_is_as_durable_as_asked(path: Path, durability: Durability) -> None:
    ledger = _opened(path, durability=durability)
    with ledger.engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "wal_autocheckpoint")
        }
    ledger.close()
    assert settings == {
        "journal_mode": "wal",
        "synchronous": {Durability.NORMAL: 1, Durability.FULL: 2}[durability],
        "wal_autocheckpoint": 10_000,
    }


def test_a_checkpoint_empties_the_log_into_the_file(path: Path) -> None:
    ledger = _opened(path)
    before = path.stat().st_size
    for number in range(200):
        run(ledger.create(replace(ROW, session=f"s-{number}")))
    assert path.stat().st_size == before
    run(ledger.checkpoint())
    assert path.stat().st_size > before
    ledger.close()


def _first(path: Path) -> None:
    """As version 1 was: its number in a table, and nothing in the header."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 0")
        connection.execute("PRAGMA application_id = 0")
        connection.execute("CREATE TABLE worldmove_schema (version INTEGER PRIMARY KEY)")
    connection.close()


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 400)


def _damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4000] = bytes(3900)
    path.write_bytes(bytes(data))


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_first, "an older WorldMove"),
        (_newer, "a newer WorldMove"),
        (_garbage, "is damaged, or no ledger"),
        (_damaged, "is damaged, or no ledger"),
        (_foreign, "not a ledger of WorldMove's"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_one_sentence(
    written: Path, harm: Callable[[Path], None], words: str
) -> None:
    harm(written)
    before = written.read_bytes()
    with pytest.raises(LedgerError, match=words) as caught:
        _opened(written)
    assert str(written) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert written.read_bytes() == before


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened: No such file or directory"):
        _opened(tmp_path / "nowhere" / "ledger.db")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


KINDS: dict[str, Callable[[Path], Any]] = {
    "a folder": Path.mkdir,
    "a socket": _socket,
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize(
    ("suffix", "kind"), [(suffix, kind) for suffix in ("", *BESIDE) for kind in KINDS if suffix or kind != "a link"]
)
def test_what_lies_in_the_place_of_a_file_and_is_none_is_named(written: Path, suffix: str, kind: str) -> None:
    place = written.with_name(written.name + suffix)
    place.unlink(missing_ok=True)
    KINDS[kind](place)
    with pytest.raises(LedgerError) as caught:
        _opened(written)
    assert str(caught.value).startswith(f"{place} is {kind}, and not a file: ")


def test_a_device_is_no_ledger(path: Path) -> None:
    path.symlink_to("/dev/zero")
    with pytest.raises(LedgerError, match="is a device, and not a file"):
        _opened(path)


@pytest.mark.parametrize(
    ("fails", "sentence"),
    [
        (
            {"open": OSError(errno.EMFILE, "Too many open files")},
            "ledger.db cannot be opened: Too many open files. Use",
        ),
        ({"access": False}, " cannot be written to: check its permissions, or"),
        ({}, "ledger.db cannot be opened, though it is a file that may be written: use"),
    ],
)
def test_a_file_that_sqlite_cannot_open_is_said_to_lack_what_it_lacks(
    written: Path, monkeypatch: pytest.MonkeyPatch, fails: dict[str, Any], sentence: str
) -> None:
    ledger = _opened(written)

    def fail(*arguments: Any) -> Any:
        raise fails["open"]

    def unopened(*arguments: Any) -> Any:
        raise sqlite3.OperationalError("unable to open database file")

    sql.event.listen(ledger.engine, "before_cursor_execute", unopened)
    with monkeypatch.context() as patched:
        if "open" in fails:
            patched.setattr(os, "open", fail)
        if "access" in fails:
            patched.setattr(os, "access", lambda *arguments: False)
        with pytest.raises(LedgerError) as caught:
            ledger.keep("move", "1", "x")
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(str(written.parent))
    ledger.close()


def test_a_ledger_locked_by_another_process_says_so_and_works_again_afterwards(written: Path) -> None:
    ledger = _opened(written)
    other = sqlite3.connect(written, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="in use by another process"):
        run(ledger.ask(OPEN, Facts()))
    other.execute("ROLLBACK")
    other.close()
    assert answer(ledger, OPEN, Facts()) == Opened(session="s", attempt=A1)
    ledger.close()


def test_a_file_that_may_not_be_written_is_said(written: Path) -> None:
    ledger = _opened(written)
    with ledger.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    with pytest.raises(LedgerError, match="cannot be written"):
        run(ledger.ask(OPEN, Facts()))
    ledger.close()


def test_a_failed_transaction_leaves_the_row_as_it_was(written: Path) -> None:
    ledger = _opened(written)
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full_disk BEFORE UPDATE ON worldmove_ledger BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
    with pytest.raises(LedgerError, match="for want of space"):
        run(ledger.ask(OPEN, Facts()))
    assert run(ledger.row("s")) == ROW
    ledger.close()


def test_the_file_is_its_owners_alone(path: Path) -> None:
    _opened(path).close()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_locked_ledger_holds_nobody_up(written: Path) -> None:
    ledger = _opened(written)
    other = sqlite3.connect(written, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    for _ in range(10):
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.probe()
    assert time.monotonic() - begin < 0.5  # with the patience of its opening it would be a second and more
    other.execute("ROLLBACK")
    other.close()
    ledger.probe()
    ledger.close()


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.rename(path.with_name("elsewhere"))])
def test_a_file_that_is_taken_away_under_its_server_is_noticed(written: Path, harm: Callable[[Path], Any]) -> None:
    ledger = _opened(written)
    ledger.probe()
    harm(written)
    with pytest.raises(LedgerError, match="was removed or replaced"):
        ledger.probe()
    ledger.close()


def test_a_full_disk_is_said_as_such_and_what_was_there_stays(written: Path) -> None:
    ledger = _opened(written)
    with ledger.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerError, match="for want of space") as caught:
        ledger.keep("move", "1", "x" * 100_000)
    assert caught.value.no_space
    assert run(ledger.row("s")) == ROW
    assert ledger.kept("move") == {}
    ledger.close()


def test_damage_anywhere_in_the_file_is_said_when_it_is_opened(path: Path) -> None:
    ledger = _opened(path)
    for number in range(400):
        run(ledger.create(replace(ROW, session=f"s-{number}")))
    ledger.close()
    data = bytearray(path.read_bytes())
    data[-8192:-4096] = bytes(4096)
    path.write_bytes(bytes(data))
    with pytest.raises(LedgerError, match="is damaged"):
        _opened(path)


# a file that was put back

FACTS = Facts(owner="A", incarnation=1, epoch=1, owner_gone=False, next_block=3)
WRITES: dict[str, Callable[[SqlLedger], Any]] = {
    "a row": lambda ledger: run(ledger.create(ROW)),
    "a decision": lambda ledger: run(ledger.ask(OPEN, FACTS)),
    "a row's end": lambda ledger: run(ledger.forget("other")),
    "a note": lambda ledger: ledger.keep("worker", "a", "1"),
    "a note's end": lambda ledger: ledger.drop("worker", "b"),
    "a probe": lambda ledger: ledger.probe(),
}


def copied(path: Path) -> Path:
    """Copy a closed ledger's file."""
    kept = path.with_name("kept")
    kept.write_bytes(path.read_bytes())
    return kept


@pytest.mark.parametrize("write", WRITES)
def test_a_file_that_lacks_one_write_is_not_started_on(tmp_path: Path, write: str) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = open_ledger(LedgerConfig(path=path))
    if write != "a row":
        run(ledger.create(ROW))
    run(ledger.create(replace(ROW, session="other")))
    ledger.keep("worker", "b", "1")
    ledger.close()
    kept, newest = copied(path), path.with_name("newest")
    ledger = open_ledger(LedgerConfig(path=path))
    WRITES[write](ledger)
    ledger.close()
    newest.write_bytes(path.read_bytes())
    path.write_bytes(kept.read_bytes())
    for _ in range(2):
        with pytest.raises(LedgerError, match="is older than the ledger that was here: it was written"):
            open_ledger(LedgerConfig(path=path))
    path.write_bytes(newest.read_bytes())
    open_ledger(LedgerConfig(path=path)).close()


@pytest.mark.parametrize("told", ["gone", "of another run of the machine", "torn"])
def test_an_older_file_is_gone_on_with_where_nothing_tells_of_a_newer_one(tmp_path: Path, told: str) -> None:
    path = tmp_path / "ledger.sqlite"
    open_ledger(LedgerConfig(path=path)).close()
    kept = copied(path)
    ledger = open_ledger(LedgerConfig(path=path))
    ledger.keep("worker", "b", "1")
    ledger.close()
    path.write_bytes(kept.read_bytes())
    edition = path.with_name("ledger.sqlite.edition")
    if told == "gone":
        edition.unlink()
    else:
        edition.write_text("8d3f 00000000000000000009\n" if told != "torn" else "8d3f", encoding="ascii")
    ledger = open_ledger(LedgerConfig(path=path))
    ledger.keep("worker", "c", "1")
    assert ledger.kept("worker") == {"c": "1"}
    ledger.close()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_where_it_cannot_be_told_how_often_a_file_was_written_it_is_written_all_the_same(
    tmp_path: Path, make: Callable[[Path], Any]
) -> None:
    path = tmp_path / "ledger.sqlite"
    make(path.with_name("ledger.sqlite.edition"))
    ledger = open_ledger(LedgerConfig(path=path))
    ledger.keep("worker", "c", "1")
    ledger.close()
    ledger = open_ledger(LedgerConfig(path=path))
    assert ledger.kept("worker") == {"c": "1"}
    ledger.close()


def test_a_count_of_writes_that_is_no_number_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    open_ledger(LedgerConfig(path=path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE worldmove_notes SET value = 'many' WHERE kind = 'edition'")
    connection.close()
    with pytest.raises(LedgerError, match="A note in the ledger is damaged"):
        open_ledger(LedgerConfig(path=path))
