"""One row read, decided and written in a transaction of the driver's own: a destination stands still for as long.

The statements are those of ``ledger_tables``, put together once. Run through SQLAlchemy they took ten times as long.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DatabaseError
from sqlalchemy.sql.expression import UpdateBase

from worldmove.fleet.ledger_tables import COUNT, LEDGER, READ, UPDATE, columns_of, count_of, row_of
from worldmove.move.ledger_row import Row

_NAMES = tuple(column.name for column in LEDGER.columns)
_TRUTHS = tuple(column.name for column in LEDGER.columns if isinstance(column.type, sql.Boolean))


class _Prepared:
    """One statement as the driver takes it."""

    def __init__(self, statement: sql.Select[Any] | UpdateBase, names: tuple[str, ...] | None = None) -> None:
        compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"), column_keys=names)
        self.text = str(compiled)
        self._names = tuple(compiled.positiontup or ())

    def values(self, known: dict[str, Any]) -> tuple[Any, ...]:
        """Return its values, in their order."""
        return tuple(known[name] for name in self._names)


_READ, _UPDATE, _COUNT = _Prepared(READ), _Prepared(UPDATE, _NAMES), _Prepared(COUNT)


def change(engine: sql.Engine, session: str, decide: Callable[[Row], Row], number: int) -> bool:
    """Read a session's row, and write what is decided of it, durably, as this write; say whether anything was written.

    Raises sqlalchemy's DatabaseError. What ``decide`` raises leaves the row as it was.
    """
    fairy = engine.raw_connection()
    try:
        return _change(fairy.driver_connection, session, decide, number)
    except sqlite3.Error as error:
        raise DatabaseError(None, None, error) from error
    finally:
        fairy.close()


def _change(connection: Any, session: str, decide: Callable[[Row], Row], number: int) -> bool:
    is_written = False
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = connection.execute(_READ.text, _READ.values({"key": session})).fetchone()
        if found is not None:
            row = _row(found)
            after = decide(row)
            if after is not row:
                connection.execute(_UPDATE.text, _UPDATE.values({"key": session, **columns_of(after)}))
                connection.execute(_COUNT.text, _COUNT.values(count_of(number)))
                is_written = True
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # whatever went wrong: nothing of it was done
            connection.execute("ROLLBACK")
    return is_written


def _row(found: tuple[Any, ...]) -> Row:
    columns = dict(zip(_NAMES, found, strict=True))
    return row_of(columns | {name: bool(columns[name]) for name in _TRUTHS})
