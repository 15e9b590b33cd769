"""The ledger in SQL: the rules of ``move.ledger_rules``, each operation in one transaction on one table.

Rules of this file:

1. The transaction is synchronous, with no await between its begin and its commit, so in this event loop nothing
   comes between; BEGIN IMMEDIATE keeps other processes out from the first read on.
2. The row is durable before its answer is returned. With synchronous=NORMAL a power cut may take the last
   transactions, and is allowed only where it takes every worker too.
3. Ids come in as arguments; SQL makes no time, no number, no order of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError

from worldmove.errors import LedgerError
from worldmove.fleet.ledger_check import checked
from worldmove.fleet.ledger_driver import change
from worldmove.fleet.ledger_edition import Edition
from worldmove.fleet.ledger_faults import as_ledger_error, name_of
from worldmove.fleet.ledger_file import (
    SCHEMA_VERSION,
    Durability,
    LedgerConfig,
    identity_of,
    open_file,
    pragma,
)
from worldmove.fleet.ledger_tables import (
    ADD_NOTE,
    COUNT,
    DELETE,
    DROP_NOTE,
    EDITION,
    INSERT,
    READ_ALL,
    READ_NOTES,
    columns_of,
    count_of,
    read_row,
    row_of,
)
from worldmove.move.ledger_rules import Denied, Facts, Operation, Row, Ruling, decide

__all__ = ["SCHEMA_VERSION", "Durability", "LedgerConfig", "SqlLedger", "open_ledger"]


class SqlLedger:
    """Rows in SQLite, and beside them the notes of ``fleet.notes``. Open it with ``open_ledger``; one per process."""

    def __init__(self, engine: sql.Engine, path: Path | None) -> None:
        """Raises LedgerError for a file that is older than the one that was there."""
        self.engine = engine
        """For whoever wants to look at the file; nothing but this class writes it."""
        self._path = path
        self._edition: Edition | None = None
        if path is not None:
            try:
                self._edition = Edition(path, self._number())
            except LedgerError:
                engine.dispose()
                raise
        self._where = name_of(path)
        self._file = None if path is None else identity_of(path)

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False, and nothing changed, where the session has one. Raises LedgerError."""
        with self._transaction() as connection:
            if read_row(connection, row.session) is not None:
                return False
            connection.execute(INSERT, columns_of(row))
            self._count(connection)
        self._told()
        return True

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        """Decide one operation, durably. No answer: not yet, a fact is missing. Raises LedgerError."""
        ruling: Ruling = None, Denied(session=operation.session, reason="unknown_session")

        def decided(row: Row) -> Row:
            nonlocal ruling
            after, answer = decide(row, operation, facts)
            ruling = after, answer
            return after

        with self._errors():
            is_written = change(self.engine, operation.session, decided, self._next())
        if is_written:
            self._told()
        return ruling

    async def row(self, session: str) -> Row | None:
        """Return a session's row. Raises LedgerError."""
        with self._transaction() as connection:
            return read_row(connection, session)

    async def rows(self) -> tuple[Row, ...]:
        """Return every row, in the order of the sessions' names. Raises LedgerError."""
        with self._transaction() as connection:
            return tuple(checked(row_of(columns), self._where) for columns in connection.execute(READ_ALL).mappings())

    async def forget(self, session: str) -> None:
        """Drop an ended session's row. Idempotent. Raises LedgerError."""
        with self._writing() as connection:
            connection.execute(DELETE, {"key": session})

    def keep(self, kind: str, key: str, value: str) -> None:
        """Keep a note, in the place of an older one. Raises LedgerError."""
        with self._writing() as connection:
            connection.execute(DROP_NOTE, {"of": kind, "named": key})
            connection.execute(ADD_NOTE, {"kind": kind, "key": key, "value": value})

    def drop(self, kind: str, key: str) -> None:
        """Drop a note. Idempotent. Raises LedgerError."""
        with self._writing() as connection:
            connection.execute(DROP_NOTE, {"of": kind, "named": key})

    def kept(self, kind: str) -> dict[str, str]:
        """Return every note of a kind, in the order of their keys. Raises LedgerError."""
        with self._transaction() as connection:
            return {str(key): str(value) for key, value in connection.execute(READ_NOTES, {"of": kind})}

    def probe(self) -> None:
        """Write, and raise LedgerError where that cannot be done or the file is not the one that was opened."""
        if self._path is not None and identity_of(self._path) != self._file:
            raise LedgerError(
                f"{self._where} was removed or replaced: put it back. A server that starts without it ends its worlds."
            )
        self.keep("probe", "probe", "")

    async def checkpoint(self) -> None:
        """Bring the log into the file now, as far as nobody is disturbed. For the time between moves."""
        with self._errors():
            pragma(self.engine, "wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file. Idempotent."""
        self.engine.dispose()
        if self._edition is not None:
            self._edition.close()

    def _number(self) -> int:
        """Return how often the file was written, as it says; begin to count where it does not."""
        with self._transaction() as connection:
            found = dict(tuple(each) for each in connection.execute(READ_NOTES, {"of": EDITION}))
            if not found:
                connection.execute(ADD_NOTE, {"kind": EDITION, "key": EDITION, "value": "0"})
        number = str(found.get(EDITION, "0"))
        if not (number.isascii() and number.isdigit()):
            raise LedgerError(
                f"A note in the ledger is damaged (edition of {name_of(self._path)}): restore the newest copy."
            )
        return int(number)

    def _next(self) -> int:
        return 0 if self._edition is None else self._edition.number + 1

    def _count(self, connection: sql.Connection) -> None:
        if self._edition is not None:
            connection.execute(COUNT, count_of(self._next()))

    def _told(self) -> None:
        if self._edition is not None:
            self._edition.tell()

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        """A transaction that counts, where there is a file."""
        with self._transaction() as connection:
            yield connection
            self._count(connection)
        self._told()

    @contextmanager
    def _transaction(self) -> Iterator[sql.Connection]:
        with self._errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise as_ledger_error(error, self._path) from error


def open_ledger(config: LedgerConfig) -> SqlLedger:
    """Open a ledger, or begin one where there is none. Raises LedgerError with one sentence that says why not."""
    return SqlLedger(open_file(config), config.path)
