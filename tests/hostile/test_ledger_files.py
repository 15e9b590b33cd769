"""A ledger file in which something else was written: it is said to be damaged before anybody plays, or it is read."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worldmove.errors import LedgerError
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.local_process import is_alive
from worldmove.fleet.notes import MoveNote, Notes, ServerNote, SessionNote, WorkerNote
from worldmove.move.ledger_row import Row, next_attempt
from worldmove.serve.receipts import Receipts

ODD: tuple[Any, ...] = (None, -1, 0, 1.5, 1 << 40, (1 << 63) - 1, "", "abc", "x" * 70, "x" * 100_000, b"\xff\xfe", "\0")
KINDS = ("server", "worker", "session", "move")
MOVE = MoveNote(
    number=1,
    session="s-1",
    attempt="00000001-a",
    source="a",
    destination="b",
    epoch=1,
    transport="shm",
    strategy="replay",
    started_at=1.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger that a server has left: a row, and a note of each kind."""
    path = tmp_path / "ledger.sqlite"
    ledger = open_ledger(LedgerConfig(path=path))
    notes = Notes(ledger)
    notes.keep_server(ServerNote(life=5, engine="e", speech="s", receipt_key="00" * 32))
    notes.keep_worker(WorkerNote(name="a", incarnation=1, pid=1, birth="b"))
    session = SessionNote(name="s-1", seed=1, num_bytes=1, num_leaves=1, state_digest="d", holders=(("a", 1),))
    notes.keep_session(session)
    notes.keep_move(MOVE)
    asyncio.run(ledger.create(Row(session="s-1", owner="a", incarnation=1, epoch=1)))
    ledger.close()
    return path


def change(path: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as file:
        try:
            file.execute(sql, values)
        except sqlite3.IntegrityError:
            return  # it takes no such value
        file.commit()


def begun(path: Path) -> bool:
    """Begin with a ledger as a server does, as far as that rests on what the file says; False where it is damaged."""
    try:
        ledger = open_ledger(LedgerConfig(path=path))
    except LedgerError:
        return False
    try:
        notes = Notes(ledger)
        server = notes.server()
        assert server is None or not server.receipt_key or Receipts(bytes.fromhex(server.receipt_key))
        for row in asyncio.run(ledger.rows()):
            msgspec.msgpack.encode([row.epoch + 1, row.incarnation + 1, row.owner])
            assert next_attempt(row, "x") > row.last_attempt
        for worker in notes.workers():
            assert worker.pid is None or not is_alive(worker.pid, "another")
            assert worker.incarnation + 1 > 0
        notes.sessions()
        notes.moves()
    except LedgerError as error:
        if "damaged" not in str(error):
            raise
        return False
    finally:
        ledger.close()
    return True


def test_it_is_begun_with_as_it_was_left(path: Path) -> None:
    assert begun(path)


@pytest.mark.parametrize("column", [name for name in Row.__dataclass_fields__ if name != "attempt"])
def test_a_column_of_anything_else_is_damage_or_what_it_says(path: Path, column: str) -> None:
    whole = path.read_bytes()
    found = []
    for odd in ODD:
        path.write_bytes(whole)
        change(path, f"update worldmove_ledger set {column} = ?", odd)
        found.append(begun(path))
    assert column in ("shown", "lost") or False in found


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_of_anything_else_is_damage_or_what_it_says(path: Path, kind: str) -> None:
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as file:
        (text,) = file.execute("select value from worldmove_notes where kind = ?", (kind,)).fetchone()
    note = json.loads(text)
    odd = [value for value in ODD if not isinstance(value, bytes)]
    spoilt = [json.dumps({**note, name: value}) for name in note for value in [*odd, [], {}, 1 << 64, 1e308]]
    found = []
    for said in (*spoilt, "", "[]", "[" * 100_000, text[:-3]):
        path.write_bytes(whole)
        change(path, "update worldmove_notes set value = ? where kind = ?", said, kind)
        found.append(begun(path))
    assert (False in found) == (kind != "move")  # what is past keeps no server from its workers
