"""What inspect says of a ledger's file, and of databases that only look like one, in bounded memory and time."""

import asyncio
import sqlite3
import struct
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.command import worldmove
from worldmove.cli import explaining_ledger
from worldmove.cli.exits import ExitCode
from worldmove.cli.explaining_ledger import LEDGER_COLUMNS, MAX_ROWS, ledger
from worldmove.errors import FileRefused
from worldmove.fleet.ledger import SCHEMA_VERSION, LedgerConfig, open_ledger
from worldmove.move.ledger_row import Row

PAGE_BYTES = 4096
NUM_BRANCHES = 300
NUM_STOREYS = 8
"""Of pages that all lead to the next one: 300 to the 8th rows in 32 KiB."""


def begun(path: Path, *rows: Row) -> Path:
    """Write a ledger as a server leaves it."""
    written = open_ledger(LedgerConfig(path=path))
    for row in rows:
        assert asyncio.run(written.create(row))
    written.close()
    return path


def script(path: Path, sql: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
    return path


def refused(path: Path) -> tuple[str, int]:
    """Return why a file is refused, and the most memory that it took to say so, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(FileRefused) as caught:
            ledger(path, path.stat().st_size)
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_ledger_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    written = open_ledger(LedgerConfig(path=path))
    for session in ("s-2", "s-1"):
        asyncio.run(written.create(Row(session=session, owner="w-1", incarnation=1, epoch=4)))
    ran = worldmove("inspect", str(path))  # while its server has it open
    assert ran.status == ExitCode.DONE, ran.err
    assert f"a ledger of schema {SCHEMA_VERSION}, 2 sessions" in ran.out
    written.close()
    before = path.read_bytes()
    document = worldmove("inspect", str(path), "--json").document
    assert (document["kind"], document["ledger_schema"]) == ("ledger", SCHEMA_VERSION)
    assert [row["session"] for row in document["rows"]] == ["s-1", "s-2"]
    assert (document["rows"][0]["owner"], document["rows"][0]["epoch"]) == ("w-1", 4)
    assert path.read_bytes() == before


def test_as_many_sessions_as_a_server_can_have_are_shown(tmp_path: Path) -> None:
    path = begun(tmp_path / "ledger.sqlite", Row(session="s-1", owner="w-1", incarnation=1, epoch=4))
    many = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {MAX_ROWS - 1})"
    others = "owner, incarnation, epoch, shown, granted_by, last_attempt, lost"
    script(path, f"{many} INSERT INTO worldmove_ledger (session, {others}) SELECT i, {others} FROM worldmove_ledger, n")
    assert len(ledger(path, path.stat().st_size).fields["rows"]) == MAX_ROWS
    one = f"SELECT 'more', {others} FROM worldmove_ledger LIMIT 1"
    script(path, f"INSERT INTO worldmove_ledger (session, {others}) {one}")
    assert "it says more than a ledger of" in refused(path)[0]


NAMES = ", ".join(LEDGER_COLUMNS)
TYPED = ", ".join(f"{name} VARCHAR" for name in LEDGER_COLUMNS)
LONG = "hex(zeroblob(30000))"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
NUMBERED = f"{ENDLESS} SELECT i AS rowid, {', '.join(f'i AS {name}' for name in LEDGER_COLUMNS)} FROM n"
MANY = f"{ENDLESS} INSERT INTO worldmove_ledger(x) SELECT 0 FROM n LIMIT 20000"
ONLY_LIKE_ONE = {
    "a view": f"CREATE VIEW worldmove_ledger AS {NUMBERED}",
    "a virtual table of a view": f"CREATE VIEW v AS {NUMBERED}; "
    f"CREATE VIRTUAL TABLE worldmove_ledger USING fts5({NAMES}, content='v', content_rowid='rowid')",
    "a virtual table": f"CREATE VIRTUAL TABLE worldmove_ledger USING fts5({NAMES})",
    "columns computed when they are read": "CREATE TABLE worldmove_ledger(x INTEGER, "
    + ", ".join(f"{name} TEXT GENERATED ALWAYS AS ({LONG}) VIRTUAL" for name in LEDGER_COLUMNS)
    + f"); {MANY}",
    "the same, said shortly": "CREATE TABLE worldmove_ledger (x INTEGER, "
    + ", ".join(f"{name} AS ({LONG})" for name in LEDGER_COLUMNS)
    + f"); {MANY}",
    "a computed column among ours": f"CREATE TABLE worldmove_ledger ({TYPED}, x INTEGER, PRIMARY KEY (session)); "
    f"{MANY}; ALTER TABLE worldmove_ledger DROP COLUMN owner; "
    f"ALTER TABLE worldmove_ledger ADD COLUMN owner AS ({LONG})",
    "a default of 30,000 characters": f"CREATE TABLE worldmove_ledger ({TYPED}, x INTEGER, PRIMARY KEY (session)); "
    f"{MANY}; ALTER TABLE worldmove_ledger DROP COLUMN owner; "
    f"ALTER TABLE worldmove_ledger ADD COLUMN owner TEXT DEFAULT '{'x' * 30000}'",
    "a table of one column": "CREATE TABLE worldmove_ledger (session VARCHAR NOT NULL, PRIMARY KEY (session))",
    "no such table": "CREATE TABLE others (session VARCHAR NOT NULL, PRIMARY KEY (session))",
    "untyped columns": f"CREATE TABLE worldmove_ledger({NAMES})",
    "a session that is bytes": f"CREATE TABLE worldmove_ledger ({TYPED}, PRIMARY KEY (session)); "
    "INSERT INTO worldmove_ledger(session) VALUES (x'ff')",
    "a session without a name": f"CREATE TABLE worldmove_ledger ({TYPED}, PRIMARY KEY (session)); "
    "INSERT INTO worldmove_ledger(owner) VALUES ('w')",
    "a text that is none": f"CREATE TABLE worldmove_ledger ({TYPED}, PRIMARY KEY (session)); "
    "INSERT INTO worldmove_ledger(session) VALUES (CAST(x'ff' AS TEXT))",
    "an epoch without end": f"CREATE TABLE worldmove_ledger ({TYPED.replace('epoch VARCHAR', 'epoch BIGINT')}, "
    "PRIMARY KEY (session)); INSERT INTO worldmove_ledger(session, epoch) VALUES ('s', 9e999)",
}


@pytest.mark.parametrize("made_by", ONLY_LIKE_ONE.values(), ids=ONLY_LIKE_ONE)
def test_a_database_that_only_looks_like_a_ledger_is_said_to_be_none_at_once(tmp_path: Path, made_by: str) -> None:
    path = script(tmp_path / "ledger.sqlite", made_by)
    began = time.monotonic()
    why, peak_bytes = refused(path)
    assert "is an SQLite file, and no ledger that can be read" in why
    assert time.monotonic() - began < 5
    assert peak_bytes < 1 << 20
    ran = worldmove("inspect", str(path), "--json")
    assert (ran.status, ran.document["error"]["code"]) == (ExitCode.USAGE, "bad_file")


def branching(to: int, start: int = 0) -> bytes:
    """A page of a table's tree whose every branch leads to one page."""
    at = PAGE_BYTES - 5 * NUM_BRANCHES
    head = struct.pack(">BHHHBI", 5, 0, NUM_BRANCHES, at, 0, to)
    cells = b"".join(struct.pack(">H", at + 5 * n) for n in range(NUM_BRANCHES))
    return (head + cells).ljust(at - start, b"\0") + struct.pack(">IB", to, 1) * NUM_BRANCHES


def without_end(path: Path, root: int) -> None:
    """Have the tree that begins at a page lead to what it holds over and over; at page 1 begins the file's own."""
    pages = bytearray(path.read_bytes())
    last = len(pages) // PAGE_BYTES
    begin, start = (root - 1) * PAGE_BYTES, 100 if root == 1 else 0
    held = bytes(pages[begin + start : begin + PAGE_BYTES])
    num_cells = struct.unpack(">H", held[3:5])[0]
    assert held[0] == 13, "it is to fit one page, of which the root is then a branch"
    pages[begin + start : begin + PAGE_BYTES] = branching(last + 1, start)
    pages += b"".join(branching(last + 2 + storey) for storey in range(NUM_STOREYS))
    # A page that is not the first begins at its own begin: the cells stay where they are, and their list comes first.
    pages += (held[: 8 + 2 * num_cells] + bytes(start) + held[8 + 2 * num_cells :]) if start else held
    pages[28:32] = struct.pack(">I", len(pages) // PAGE_BYTES)
    path.write_bytes(pages)


def root_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(
            connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'worldmove_ledger'").fetchone()[0]
        )


@pytest.mark.parametrize("owner", ["", "w-1", "w" * 64])
def test_pages_that_lead_to_each_other_without_end_are_read_as_far_as_the_file_is_long(
    tmp_path: Path, owner: str
) -> None:
    row = Row(session="s-1" if owner else "", owner=owner, incarnation=1, epoch=1)
    path = begun(tmp_path / "ledger.sqlite", row)
    without_end(path, root_of(path))
    with closing(sqlite3.connect(path)) as connection:
        some = connection.execute(f"SELECT {NAMES} FROM worldmove_ledger NOT INDEXED LIMIT {MAX_ROWS * 2}").fetchall()
    assert len(some) == MAX_ROWS * 2, "it has rows without end"
    why, peak_bytes = refused(path)
    assert "it says more than a ledger of" in why
    assert peak_bytes < 24 << 20


def test_a_file_of_which_sqlite_reads_for_ever_what_tables_there_are_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining_ledger, "WITHIN_S", 0.5)
    path = begun(tmp_path / "ledger.sqlite", Row(session="s-1", owner="w-1", incarnation=1, epoch=4))
    without_end(path, 1)
    began = time.monotonic()
    _, peak_bytes = refused(path)
    assert 0.5 <= time.monotonic() - began < 5, "it went on until it was stopped"
    assert peak_bytes < 1 << 20
