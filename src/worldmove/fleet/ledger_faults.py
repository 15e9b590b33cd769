"""What a ledger's file that fails is said to be: one sentence, with what to do."""

from pathlib import Path

from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from worldmove.errors import LedgerError
from worldmove.fleet.ledger_place import why_unopened


def as_ledger_error(error: SQLAlchemyError, path: Path | None) -> LedgerError:
    """Return a fault of the ledger as an error of ours. ``path``: its file; None is one in memory."""
    return LedgerError(_sentence(error, path), no_space="is full" in str(error))


def name_of(path: Path | None) -> str:
    """Return what a sentence calls the ledger."""
    return "the ledger in memory" if path is None else str(path)


def _sentence(error: SQLAlchemyError, path: Path | None) -> str:
    where = name_of(path)
    text = str(error.orig) if isinstance(error, DatabaseError) else str(error)
    if "locked" in text:
        return f"{where} is in use by another process: end that one, or use another --state folder."
    if "disk is full" in text or "disk I/O" in text:
        return f"{where} cannot be written, for want of space or by a fault of the disk ({text}): free some."
    if "readonly" in text:
        return f"{where} cannot be written: check its permissions and those of its folder."
    if "not a database" in text or "malformed" in text:
        return f"{where} is damaged, or no ledger: use another --state folder."
    if path is not None and "unable to open" in text:
        return why_unopened(path)
    return f"{where} does not answer: {text}"
