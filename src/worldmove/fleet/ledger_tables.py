"""The ledger's tables, what is asked of them, and a row as columns."""

from typing import Any

import sqlalchemy as sql

from worldmove.move.ledger_row import OpenedFor, Row

METADATA = sql.MetaData()
LEDGER = sql.Table(
    "worldmove_ledger",
    METADATA,
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
NOTES = sql.Table(
    "worldmove_notes",
    METADATA,
    sql.Column("kind", sql.String(16), primary_key=True),
    sql.Column("key", sql.String(64), primary_key=True),
    sql.Column("value", sql.Text, nullable=False),
)

_ONE = LEDGER.c.session == sql.bindparam("key")
# Built once: building a statement costs more than running it.
READ = sql.select(LEDGER).where(_ONE).order_by(LEDGER.c.session)
READ_ALL = sql.select(LEDGER).order_by(LEDGER.c.session)
INSERT = LEDGER.insert()
UPDATE = LEDGER.update().where(_ONE)
DELETE = LEDGER.delete().where(_ONE)
_NOTE = sql.and_(NOTES.c.kind == sql.bindparam("of"), NOTES.c.key == sql.bindparam("named"))
READ_NOTES = sql.select(NOTES.c.key, NOTES.c.value).where(NOTES.c.kind == sql.bindparam("of")).order_by(NOTES.c.key)
DROP_NOTE = NOTES.delete().where(_NOTE)
ADD_NOTE = NOTES.insert()
EDITION = "edition"
"""The kind, and the key, of the note that counts the writes."""
COUNT = NOTES.update().where(NOTES.c.kind == sql.bindparam("of")).values(value=sql.bindparam("number"))


def count_of(number: int) -> dict[str, str]:
    """Return what ``COUNT`` is given, to say that this is the write of such a number."""
    return {"of": EDITION, "number": str(number)}


def read_row(connection: sql.Connection, session: str) -> Row | None:
    """Return a session's row; None where it has none."""
    columns = connection.execute(READ, {"key": session}).mappings().one_or_none()
    return None if columns is None else row_of(columns)


def row_of(columns: Any) -> Row:
    """Return a row from its columns."""
    known = dict(columns)
    attempt = known.pop("attempt")
    destination, incarnation = known.pop("destination"), known.pop("destination_incarnation")
    opened = None if attempt is None else OpenedFor(attempt=attempt, destination=destination, incarnation=incarnation)
    return Row(**known, attempt=opened)


def columns_of(row: Row) -> dict[str, Any]:
    """Return a row's columns, by name."""
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
