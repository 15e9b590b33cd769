"""The ledger in SQL: the rules of ``move.ledger_rules``, each operation in one transaction on one table.

Rules of this file:

1. The transaction is synchronous, with no await between its begin and its commit, so in this event loop nothing
   comes between; BEGIN IMMEDIATE keeps other processes out from the first read on.
2. The row is durable before its answer is returned. With synchronous=NORMAL a power cut may take the last
   transactions, and is allowed only where it takes every worker too.
3. Ids come in as arguments; SQL makes no time, no number, no order of its own.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from worldmove.errors import LedgerError
from worldmove.move.ledger_rules import Denied, Facts, OpenedFor, Operation, Row, Ruling, decide

SCHEMA_VERSION = 2
"""Kept in the file as ``PRAGMA user_version``. Version 1 had no notes, and kept its number in a table."""
APPLICATION_ID = 0x574D4C47
"""``PRAGMA application_id``, "WMLG": tells a ledger from any other database."""

_metadata = sql.MetaData()
_ledger = sql.Table(
    "worldmove_ledger",
    _metadata,
    sql.Column("session", sql.String(64), primary_key=True),
    sql.Column("owner", sql.String(64), nullable=False),
    sql.Column("incarnation", sql.BigInteger, nullable=False),
    sql.Column("epoch", sql.BigInteger, nullable=False),
    sql.Column("shown", sql.Boolean, nullable=False),
    sql.Column("attempt", sql.String(64)),
    sql.Column("destination", sql.String(64)),
    sql.Column("destination_incarnation", sql.BigInteger),
    sql.Column("granted_by", sql.String(64), nullable=False),
    sql.Column("last_attempt", sql.String(64), nullable=False),
    sql.Column("lost", sql.Boolean, nullable=False),
)
_notes = sql.Table(
    "worldmove_notes",
    _metadata,
    sql.Column("kind", sql.String(16), primary_key=True),
    sql.Column("key", sql.String(64), primary_key=True),
    sql.Column("value", sql.Text, nullable=False),
)

_ONE = _ledger.c.session == sql.bindparam("key")
# Built once: building a statement costs more than running it.
_READ = sql.select(_ledger).where(_ONE).order_by(_ledger.c.session)
_READ_ALL = sql.select(_ledger).order_by(_ledger.c.session)
_INSERT = _ledger.insert()
_UPDATE = _ledger.update().where(_ONE)
_DELETE = _ledger.delete().where(_ONE)
_NOTE = sql.and_(_notes.c.kind == sql.bindparam("of"), _notes.c.key == sql.bindparam("named"))
_READ_NOTES = (
    sql.select(_notes.c.key, _notes.c.value).where(_notes.c.kind == sql.bindparam("of")).order_by(_notes.c.key)
)
_DROP_NOTE = _notes.delete().where(_NOTE)
_ADD_NOTE = _notes.insert()


class Durability(Enum):
    """What an answered operation survives."""

    NORMAL = "NORMAL"
    """The end of every process; not a power cut. For workers on the ledger's own host: a cut takes them too."""
    FULL = "FULL"
    """A power cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerConfig:
    """Where the ledger is kept, and how."""

    path: Path | None = None
    """A file; None keeps it in memory, for tests."""
    durability: Durability = Durability.FULL
    busy_s: float = 2.0
    """How long opening it waits for another process's transaction."""
    patience_s: float = 0.005
    """The same for each later operation: the event loop stands still for as long, and with it every world."""
    autocheckpoint_pages: int = 10_000
    """A checkpoint falls into some transaction and takes milliseconds; ``checkpoint`` is called between moves."""


class SqlLedger:
    """Rows in SQLite, and beside them the notes of ``fleet.notes``. Open it with ``open_ledger``; one per process."""

    def __init__(self, engine: sql.Engine, path: Path | None) -> None:
        self.engine = engine
        """For whoever wants to look at the file; nothing but this class writes it."""
        self._path = path
        self._where = _name_of(path)
        self._file = None if path is None else _identity(path)

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False, and nothing changed, where the session has one. Raises LedgerError."""
        with self._transaction() as connection:
            if _read(connection, row.session) is not None:
                return False
            connection.execute(_INSERT, _columns(row))
            return True

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        """Decide one operation, durably. No answer: not yet, a fact is missing. Raises LedgerError."""
        with self._transaction() as connection:
            row = _read(connection, operation.session)
            if row is None:
                return None, Denied(session=operation.session, reason="unknown_session")
            after, answer = decide(row, operation, facts)
            if after is not row:
                connection.execute(_UPDATE, {"key": row.session, **_columns(after)})
            return after, answer

    async def row(self, session: str) -> Row | None:
        """Return a session's row. Raises LedgerError."""
        with self._transaction() as connection:
            return _read(connection, session)

    async def rows(self) -> tuple[Row, ...]:
        """Return every row, in the order of the sessions' names. Raises LedgerError."""
        with self._transaction() as connection:
            return tuple(_row(columns) for columns in connection.execute(_READ_ALL).mappings())

    async def forget(self, session: str) -> None:
        """Drop an ended session's row. Idempotent. Raises LedgerError."""
        with self._transaction() as connection:
            connection.execute(_DELETE, {"key": session})

    def keep(self, kind: str, key: str, value: str) -> None:
        """Keep a note, in the place of an older one. Raises LedgerError."""
        with self._transaction() as connection:
            connection.execute(_DROP_NOTE, {"of": kind, "named": key})
            connection.execute(_ADD_NOTE, {"kind": kind, "key": key, "value": value})

    def drop(self, kind: str, key: str) -> None:
        """Drop a note. Idempotent. Raises LedgerError."""
        with self._transaction() as connection:
            connection.execute(_DROP_NOTE, {"of": kind, "named": key})

    def kept(self, kind: str) -> dict[str, str]:
        """Return every note of a kind, in the order of their keys. Raises LedgerError."""
        with self._transaction() as connection:
            return {str(key): str(value) for key, value in connection.execute(_READ_NOTES, {"of": kind})}

    def probe(self) -> None:
        """Write, and raise LedgerError where that cannot be done or the file is not the one that was opened."""
        if self._path is not None and _identity(self._path) != self._file:
            raise LedgerError(
                f"{self._where} was removed or replaced: put it back. A server that starts without it ends its worlds."
            )
        self.keep("probe", "probe", "")

    async def checkpoint(self) -> None:
        """Bring the log into the file now, as far as nobody is disturbed. For the time between moves."""
        with self._errors():
            _pragma(self.engine, "wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file. Idempotent."""
        self.engine.dispose()

    @contextmanager
    def _transaction(self) -> Iterator[sql.Connection]:
        with self._errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise _as_ledger_error(error, self._where) from error


def open_ledger(config: LedgerConfig) -> SqlLedger:
    """Open a ledger, or begin one where there is none. Raises LedgerError with one sentence that says why not."""
    where = _name_of(config.path)
    url = sql.URL.create("sqlite", database=str(config.path) if config.path else None)
    engine = sql.create_engine(url, poolclass=StaticPool, connect_args={"timeout": config.busy_s})
    sql.event.listen(engine, "connect", lambda connection, _: _set_up(connection, config))
    sql.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        if config.path:
            config.path.touch(mode=0o600)
        with engine.begin() as connection:
            _check_schema(connection, where)
            _check_pages(connection, where)
        _pragma(engine, "journal_mode=WAL")  # only now: it would change a file that is not ours
        _pragma(engine, f"busy_timeout={round(config.patience_s * 1000)}")
    except OSError as error:
        raise LedgerError(f"{where} cannot be opened: {error.strerror}. Use another --state folder.") from error
    except SQLAlchemyError as error:
        engine.dispose()
        raise _as_ledger_error(error, where) from error
    except LedgerError:
        engine.dispose()
        raise
    return SqlLedger(engine, config.path)


def _name_of(path: Path | None) -> str:
    return "the ledger in memory" if path is None else str(path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _set_up(connection: Any, config: LedgerConfig) -> None:
    connection.isolation_level = None  # the driver begins no transaction of its own
    connection.execute(f"PRAGMA synchronous={config.durability.value}")
    connection.execute(f"PRAGMA wal_autocheckpoint={config.autocheckpoint_pages}")


def _pragma(engine: sql.Engine, text: str) -> None:
    """Run a pragma outside of any transaction."""
    connection = engine.raw_connection()
    try:
        connection.cursor().execute(f"PRAGMA {text}")
    except sqlite3.DatabaseError as error:
        raise DatabaseError(text, None, error) from error
    finally:
        connection.close()


def _check_schema(connection: sql.Connection, where: str) -> None:
    tables = sql.inspect(connection).get_table_names()
    application, version = (_number(connection, name) for name in ("application_id", "user_version"))
    if not tables and not application:
        _metadata.create_all(connection)
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA_VERSION}")
        return
    first = "worldmove_schema" in tables  # version 1, which had no application id
    if application != APPLICATION_ID and not first:
        raise LedgerError(f"{where} is a database, but not a ledger of WorldMove's: use another --state folder.")
    if version != SCHEMA_VERSION:
        age, found = ("an older", 1) if first else ("an older" if version < SCHEMA_VERSION else "a newer", version)
        raise LedgerError(
            f"{where} was written by {age} WorldMove (version {found}, this one has {SCHEMA_VERSION}): "
            "use that one, or use another --state folder."
        )


def _check_pages(connection: sql.Connection, where: str) -> None:
    """Read every page once: damage is to be said before anybody plays, not in the middle of a move."""
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        raise LedgerError(f"{where} is damaged, or no ledger: use another --state folder.")


def _number(connection: sql.Connection, pragma: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one())


def _as_ledger_error(error: SQLAlchemyError, where: str) -> LedgerError:
    return LedgerError(_sentence(error, where), no_space="is full" in str(error))


def _sentence(error: SQLAlchemyError, where: str) -> str:
    text = str(error.orig) if isinstance(error, DatabaseError) else str(error)
    if "locked" in text:
        return f"{where} is in use by another process: end that one, or use another --state folder."
    if "disk is full" in text or "disk I/O" in text:
        return f"{where} cannot be written, for want of space or by a fault of the disk ({text}): free some."
    if "readonly" in text:
        return f"{where} cannot be written: check its permissions and those of its folder."
    if "not a database" in text or "malformed" in text:
        return f"{where} is damaged, or no ledger: use another --state folder."
    if isinstance(error, OperationalError) and "unable to open" in text:
        return f"{where} cannot be opened: check that its folder exists and may be written to."
    return f"{where} does not answer: {text}"


def _read(connection: sql.Connection, session: str) -> Row | None:
    columns = connection.execute(_READ, {"key": session}).mappings().one_or_none()
    return None if columns is None else _row(columns)


def _row(columns: Any) -> Row:
    known = dict(columns)
    attempt = known.pop("attempt")
    destination, incarnation = known.pop("destination"), known.pop("destination_incarnation")
    opened = None if attempt is None else OpenedFor(attempt=attempt, destination=destination, incarnation=incarnation)
    return Row(**known, attempt=opened)


def _columns(row: Row) -> dict[str, Any]:
    opened = row.attempt
    return {
        "session": row.session,
        "owner": row.owner,
        "incarnation": row.incarnation,
        "epoch": row.epoch,
        "shown": row.shown,
        "attempt": opened.attempt if opened else None,
        "destination": opened.destination if opened else None,
        "destination_incarnation": opened.incarnation if opened else None,
        "granted_by": row.granted_by,
        "last_attempt": row.last_attempt,
        "lost": row.lost,
    }
