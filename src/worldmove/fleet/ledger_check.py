"""Rows as they are read at a server's start: a file takes whatever was written into a column, and may be damaged."""

import msgspec

from worldmove.errors import LedgerError
from worldmove.move.ledger_messages import AttemptId, Count, Name
from worldmove.move.ledger_row import Row


class _OpenedFor(msgspec.Struct, frozen=True, kw_only=True):
    attempt: AttemptId
    destination: Name
    incarnation: Count


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    session: Name
    owner: Name
    incarnation: Count
    epoch: Count
    shown: bool
    attempt: _OpenedFor | None
    granted_by: Name
    last_attempt: str
    lost: bool


def checked(row: Row, where: str) -> Row:
    """Return a row whose every column is what the rules take it for. Raises LedgerError."""
    try:
        found = msgspec.convert(row, type=_Row, from_attributes=True)
        if found.last_attempt:
            msgspec.convert(found.last_attempt, type=AttemptId)
    except msgspec.ValidationError as error:
        raise LedgerError(
            f"A row of {where} is damaged ({error}): restore the newest copy, or use another --state folder."
        ) from error
    return row
