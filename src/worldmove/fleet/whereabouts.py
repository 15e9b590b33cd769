"""Where a session is, and where it goes on, as the ledger's row and the workers say it by now."""

import asyncio

from worldmove.fleet.alike import alike
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT

LOOK_S = 0.05
"""Between two looks at a row whose owner is gone."""


class Whereabouts:
    """Looks, and waits a while where what it sees may be about to change."""

    def __init__(self, *, desk: LedgerDesk, workers: WorkerTable, owner_s: float, copy_s: float) -> None:
        """``owner_s``, ``copy_s``: how long to wait for an owner that lives, and for an older copy to go, seconds."""
        self._desk = desk
        self._workers = workers
        self._owner_s = owner_s
        self._copy_s = copy_s

    async def living_owner(self, session: str) -> str | None:
        """Return who owns a session by the row, waiting a while where that worker is missing; None if it still is."""
        try:
            async with asyncio.timeout(self._owner_s):
                while (row := self._desk.row(session)) is not None and not row.lost:
                    if not self._desk.owner_is_missing(row):
                        return row.owner
                    await self._workers.changed(LOOK_S)
        except TimeoutError:
            return None
        return None

    def missing(self, row: Row | None) -> str:
        """Say in a word why a session's owner does not play it, where that is so."""
        if row is None or not self._desk.owner_is_missing(row):
            return ""
        return "worker_gone" if self._desk.owner_is_gone(row) else "silent"

    async def until_free(self, worker: WorkerRecord, record: SessionRecord) -> None:
        """Wait a while for what a worker has of a session and cannot have beside another copy.

        That is an older copy: its check ends with the next blocks; of a protected session it stays until a newer
        snapshot is kept. Or it is a snapshot in the last room there, where another worker can keep one instead. One is
        kept at once meanwhile (``fleet.protection``), for a move that waits has not begun.
        """
        record.waits_for = worker.name
        try:
            async with asyncio.timeout(self._copy_s):
                while self._is_in_the_way(worker, record.name):
                    await self._workers.changed(self._copy_s)
        except TimeoutError:
            return  # the worker itself will say what it holds
        finally:
            record.waits_for = None

    def _is_in_the_way(self, worker: WorkerRecord, session: str) -> bool:
        phases = {copy.phase for copy in worker.copies if copy.session == session}
        if phases - {KEPT}:
            return True
        return bool(phases) and worker.slots_free == 0 and self._may_be_kept_elsewhere(worker, session)

    def _may_be_kept_elsewhere(self, worker: WorkerRecord, session: str) -> bool:
        row = self._desk.row(session)
        owner = None if row is None else self._workers.find(row.owner)
        if owner is None:
            return False
        able = alike(self._workers.answering(), owner.environment)
        return any(other.slots_free > 0 for other in able if other not in (owner, worker))
