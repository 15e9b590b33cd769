"""Sessions of an earlier server: who has yet to say what it holds, and what the gateway may do by then.

Inquiries are answered from the row at once; only showing and closing wait. In this order, and again at each report:

1. The owner has said what it holds, or is dead: the gateway may show, as soon as the client has come back.
2. So has every worker that was noted as a holder: the gateway may close lists. This wait has no limit. A list that
   a stopped worker holds would be closed anew otherwise.
3. An owner that does not know of its grant, because the word was lost with the server, is told.
"""

from collections.abc import Callable, Sequence

from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.ports import Gateway
from worldmove.fleet.workers import WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import TakeOver

LOOK_S = 0.25

Holder = tuple[str, int]
"""A worker and its incarnation."""


class Resumption:
    """Waits for the reports about sessions of an earlier server."""

    def __init__(self, *, workers: WorkerTable, desk: LedgerDesk, gateway: Callable[[], Gateway]) -> None:
        self._workers = workers
        self._desk = desk
        self._gateway = gateway

    async def resume(self, session: str, noted: Sequence[Holder]) -> None:
        """Return once a session goes on, or has ended."""
        while (row := self._desk.row(session)) is not None and not row.lost:
            if self._is_settled((row.owner, row.incarnation)):
                self._gateway().may_show(session, owner_lives=not self._desk.owner_is_gone(row))
                if all(self._is_settled(holder) for holder in noted):
                    self._gateway().may_close(session)
                    if self._gateway().next_block(session) is not None:
                        self._remind(row)
                        return
            await self._workers.changed(LOOK_S)

    def _is_settled(self, holder: Holder) -> bool:
        worker, incarnation = holder
        if self._workers.is_gone(worker, incarnation):
            return True
        record = self._workers.find(worker)
        return record is not None and record.incarnation == incarnation and record.reported

    def _remind(self, row: Row) -> None:
        """Tell an owner whose copy is retired, or that has none, that it owns the session: it replays, or is gone."""
        worker = self._workers.find(row.owner)
        next_block = self._gateway().next_block(row.session)
        if worker is None or next_block is None or self._desk.owner_is_gone(row):
            return
        copy = next((copy for copy in worker.copies if copy.session == row.session), None)
        if copy is None or (copy.phase == "retired" and copy.epoch < row.epoch):
            self._workers.send(row.owner, TakeOver(session=row.session, epoch=row.epoch, block=next_block))
