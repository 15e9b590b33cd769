"""The ledger's desk in the server: every operation passes here, with the facts that only the server knows.

The desk keeps each row as it was after the last operation. Nobody else writes the ledger while this server
lives, so a row read here is the row.
"""

import asyncio
from collections.abc import Callable

from worldmove.errors import LedgerError
from worldmove.fleet.ports import Gateway, Owner
from worldmove.fleet.workers import WorkerTable
from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Ledger


class LedgerDesk:
    """Rows, facts, and one operation at a time. ``on_row`` hears of every row that has changed."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        workers: WorkerTable,
        on_row: Callable[[Row | None, Row], None],
        on_error: Callable[[str, LedgerError], None],
    ) -> None:
        self._ledger = ledger
        self._workers = workers
        self._on_row = on_row
        self._on_error = on_error
        self._lock = asyncio.Lock()
        self._rows: dict[str, Row] = {}
        self._closed: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._gateway: Gateway | None = None
        self.poll = 0
        """The number of the newest poll that every worker has answered, or died in."""

    def attach(self, gateway: Gateway) -> None:
        """Name the gateway, which knows the next block."""
        self._gateway = gateway

    async def load(self) -> tuple[Row, ...]:
        """Read every row that an earlier server has left."""
        for row in await self._ledger.rows():
            self._rows[row.session] = row
        return tuple(self._rows.values())

    def row(self, session: str) -> Row | None:
        return self._rows.get(session)

    def owner(self, session: str) -> Owner | None:
        """Return whose frames may be shown. None if the session is unknown or lost."""
        row = self._rows.get(session)
        if row is None or row.lost:
            return None
        return Owner(worker=row.owner, incarnation=row.incarnation, epoch=row.epoch)

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False where the session has one."""
        async with self._lock:
            if not await self._ledger.create(row):
                return False
            self._rows[row.session] = row
        self._on_row(None, row)
        return True

    async def forget(self, session: str) -> None:
        """Drop an ended session's row."""
        async with self._lock:
            await self._ledger.forget(session)
            for known in (self._rows, self._closed, self._gone):
                known.pop(session, None)

    async def ask(self, operation: Operation) -> Answer | None:
        """Put one operation to the ledger. None: a fact is missing, it does not answer, or there is no such session."""
        async with self._lock:
            old = self._rows.get(operation.session)
            if old is None:
                return None
            try:
                new, answer = await self._ledger.ask(operation, self._facts(old))
            except LedgerError as error:
                self._on_error(operation.session, error)
                return None  # silence, for whoever asked: it may or may not have been done
            if new is None:
                return answer
            self._rows[operation.session] = new
        if new != old:
            self._on_row(old, new)
        return answer

    def close_epoch(self, session: str, epoch: int) -> None:
        """Have the gateway refuse an epoch's frames, and know that it does."""
        if self._gateway is not None:
            self._gateway.close_epoch(session, epoch)
            self._closed[session] = epoch

    def owner_says_gone(self, session: str, epoch: int) -> None:
        """The owner in ``epoch`` holds no copy of what it owns."""
        self._gone[session] = max(epoch, self._gone.get(session, 0))

    def is_gone(self, worker: str, incarnation: int) -> bool:
        """Whether a worker's incarnation is proven dead."""
        return self._workers.is_gone(worker, incarnation)

    def owner_is_gone(self, row: Row) -> bool:
        """Whether the owner's copy is proven dead."""
        return self._workers.is_gone(row.owner, row.incarnation) or self._gone.get(row.session) == row.epoch

    def _facts(self, row: Row) -> Facts:
        return Facts(
            owner=row.owner,
            incarnation=row.incarnation,
            epoch=row.epoch,
            owner_gone=self.owner_is_gone(row),
            next_block=self._gateway.next_block(row.session) if self._gateway else None,
            closed_epoch=self._closed.get(row.session),
            poll=self.poll,
        )
