"""Whether a move makes sense, said in one sentence before anything is done about it."""

from worldmove.errors import UserError
from worldmove.fleet.sessions import SessionRecord
from worldmove.move.ledger_row import Row


def require_kept(record: SessionRecord, row: Row | None) -> Row:
    """Return the row of a session that is in the ledger and not over. Raises UserError."""
    name = record.name
    if row is None and not record.throwaway:
        why = f"The session {name} is being opened; try again when that has ended."
        raise UserError(why, code="busy", status=409)
    if row is None:
        why = f"{name} is a throw-away copy and is not moved; move the session that it was made of."
        raise UserError(why, code="throwaway", status=409)
    if row.lost:
        raise UserError(f"The session {name} is lost; open a new one.", code="lost", status=410)
    if record.closing:
        raise UserError(f"The session {name} is being closed; open a new one.", code="closing", status=409)
    return row


def require_movable(record: SessionRecord, row: Row | None, to: str) -> Row:
    """Return the row of a session that can be moved to a worker. Raises UserError: what stands in the way."""
    name, row = record.name, require_kept(record, row)
    if record.ahead is not None:
        why = f"The ledger has lost a write about {name}: put its newest file back, and start the server again."
        raise UserError(why, code="ledger_behind", status=409)
    if record.resuming:
        why = f"The server was started again, and {name} waits: {record.resuming_why}."
        raise UserError(why, code="resuming", status=409)
    if record.moving or row.attempt is not None:
        why = f"Another move of {name} is under way; try again when it has ended."
        raise UserError(why, code="moving", status=409)
    if row.owner == to:
        why = f"The session {name} is on {to} already; name another worker."
        raise UserError(why, code="already_there", status=409)
    return row
