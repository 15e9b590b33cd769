"""A ledger that forgets with its process: the fake beside the real one."""

from worldmove.move.ledger_rules import Denied, Facts, Operation, Row, Ruling, decide


class MemoryLedger:
    """Rows in a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False, and nothing changed, where the session has one."""
        return self._rows.setdefault(row.session, row) is row

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        """Decide one operation. No answer: not yet, a fact is missing."""
        row = self._rows.get(operation.session)
        if row is None:
            return None, Denied(session=operation.session, reason="unknown_session")
        self._rows[row.session], answer = decide(row, operation, facts)
        return self._rows[row.session], answer

    async def row(self, session: str) -> Row | None:
        """Return a session's row."""
        return self._rows.get(session)

    async def rows(self) -> tuple[Row, ...]:
        """Return every row, in the order of the sessions' names."""
        return tuple(self._rows[session] for session in sorted(self._rows))

    async def forget(self, session: str) -> None:
        """Drop an ended session's row. Idempotent."""
        self._rows.pop(session, None)
