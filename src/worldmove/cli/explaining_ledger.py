"""Explains a ledger's file, which somebody else may have made: whatever it says, little is read, and not for long.

Rules of this file:

1. Nothing in it is run. Its table is of plain columns, as ours is, and no view, virtual table, computed column or
   default stands for one: those may be of any length, and have rows without end.
2. What was read counts, not what the file looks like: the pages of a file may lead to each other, so that a few of them
   are a table without end. What a whole file says is no more than it has bytes.
"""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from worldmove.cli.found import Found
from worldmove.errors import FileRefused
from worldmove.fleet.ledger import SCHEMA_VERSION
from worldmove.units import bytes_text

LEDGER_HEADER = ("SESSION", "OWNER", "INCARNATION", "EPOCH", "SHOWN", "ATTEMPT", "DESTINATION", "LOST")
LEDGER_COLUMNS = ("session", "owner", "incarnation", "epoch", "shown", "attempt", "destination", "lost")
MAX_VALUE_BYTES = 1 << 16
MAX_ROWS = 1 << 16
"""Sixteen times the sessions that a server has room for."""
WITHIN_S = 10.0
"""So many rows take a second."""
LOOK_STEPS = 100
"""Of SQLite's machine, between two looks at the clock."""
_COLUMN = r"[a-z_]+ [A-Z]+(?:\([0-9]+\))?(?: NOT NULL)?"
PLAIN = re.compile(
    rf"CREATE TABLE worldmove_ledger \(\s*{_COLUMN}(?:,\s*{_COLUMN})*,\s*PRIMARY KEY \(session\)\s*\)", re.ASCII
)
"""How a ledger of any version says what its table is."""
NO_TABLE = "it has no table of sessions"


def ledger(path: Path, size: int) -> Found:
    """Explain a ledger's file. It is opened for reading only. Raises FileRefused."""
    address = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            _limit(connection)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            rows = _rows(connection, size + _log_bytes(path))
    except sqlite3.Error as error:
        raise FileRefused(f"{path} is an SQLite file, and no ledger that can be read ({error}).") from error
    known = "" if version == SCHEMA_VERSION else f" (this version of WorldMove reads {SCHEMA_VERSION})"
    return Found(
        kind="ledger",
        sentence=f"a ledger of schema {version}{known}, {len(rows)} sessions, {bytes_text(size)}",
        fields={"ledger_schema": version, "rows": [dict(zip(LEDGER_COLUMNS, row, strict=True)) for row in rows]},
        tables=((LEDGER_HEADER, rows),),
    )


def _limit(connection: sqlite3.Connection) -> None:
    """Have every statement end in time, that with which SQLite reads what tables there are, too."""
    until = time.monotonic() + WITHIN_S
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.set_progress_handler(lambda: time.monotonic() > until, LOOK_STEPS)
    connection.execute("PRAGMA trusted_schema=OFF")


def _log_bytes(path: Path) -> int:
    """Return how much lies beside the file, of a server that has it open."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except OSError:
        return 0


def _rows(connection: sqlite3.Connection, num_bytes: int) -> list[tuple[object, ...]]:
    """Return a ledger's rows, in the order of the sessions' names. Raises sqlite3.Error."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'worldmove_ledger'").fetchone()
    if found is None or not isinstance(found[0], str) or not PLAIN.fullmatch(found[0]):
        raise sqlite3.DatabaseError(NO_TABLE)
    # Neither sorted nor looked up there: SQLite would read all of it before the first row comes.
    rows = connection.execute(f"SELECT {', '.join(LEDGER_COLUMNS)} FROM worldmove_ledger NOT INDEXED")
    return sorted(_counted(rows, num_bytes), key=lambda row: str(row[0]))


def _counted(rows: sqlite3.Cursor, num_bytes: int) -> Iterator[tuple[object, ...]]:
    """Give rows as a ledger has them, and no more than a file of so many bytes can have. Raises sqlite3.Error."""
    num_read = 0
    for number, row in enumerate(rows):
        if not isinstance(row[0], str) or any(isinstance(value, bytes | float) for value in row):
            raise sqlite3.DatabaseError(NO_TABLE)
        num_read += sum(len(value) for value in row if isinstance(value, str))
        if num_read > num_bytes or number == MAX_ROWS:
            raise sqlite3.DatabaseError(f"it says more than a ledger of {num_bytes:,} bytes can")
        yield row
