"""What a ledger's file that fails is said to be: one sentence, with what to do."""

from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from worldmove.errors import LedgerError


def as_ledger_error(error: SQLAlchemyError, where: str) -> LedgerError:
    """Return a fault of the ledger that ``where`` names as an error of ours."""
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
