"""Sessions of an earlier server: who has yet to say what it holds, and what the gateway may do by then.

Inquiries are answered from the row at once; only showing and closing wait. In this order, and again at each report:

1. The owner has said what it holds, or is dead: the gateway may show, as soon as the client has come back.
2. So has every worker that was noted as a holder: the gateway may close lists. This wait has no limit. A list that
   a stopped worker holds would be closed anew otherwise.
3. An owner that does not know of its grant, because the word was lost with the server, is told. Until it has replayed
   the lists, it has not computed what its predecessor had shown: the gateway takes it for dead, and goes by what a
   client has. Where a list that it needs is with nobody any more, it cannot go on, and is taken for gone.
"""

from collections.abc import Callable, Sequence

from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.ports import Gateway
from worldmove.fleet.worker_table import WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT, Copy, TakeOver

LOOK_S = 0.25

Holder = tuple[str, int]
"""A worker and its incarnation."""

BEGUN = "nobody has reported to this server yet"
"""What is waited for before that is known."""


class Resumption:
    """Waits for the reports about sessions of an earlier server."""

    def __init__(self, *, workers: WorkerTable, desk: LedgerDesk, gateway: Callable[[], Gateway]) -> None:
        self._workers = workers
        self._desk = desk
        self._gateway = gateway

    async def resume(
        self, session: str, noted: Sequence[Holder], on_wait: Callable[[str], None] = lambda why: None
    ) -> None:
        """Return once a session goes on, or has ended. ``on_wait`` hears at each look what is waited for, in words."""
        while (row := self._desk.row(session)) is not None and not row.lost:
            if self._is_settled((row.owner, row.incarnation)):
                lives = not self._desk.owner_is_gone(row) and not self._is_to_replay(row)
                self._gateway().may_show(session, owner_lives=lives)
                if all(self._is_settled(holder) for holder in noted):
                    self._gateway().may_close(session)
                    if self._gateway().next_block(session) is not None:
                        self._remind(row)
                        return
            on_wait(self._why(row, noted))
            await self._workers.changed(LOOK_S)

    def _why(self, row: Row, noted: Sequence[Holder]) -> str:
        """Say what is waited for, and what can be done."""
        if not self._is_settled((row.owner, row.incarnation)):
            return f"{row.owner}, which plays it, has not reported yet; try again soon"
        silent = ", ".join(dict.fromkeys(holder[0] for holder in noted if not self._is_settled(holder)))
        if silent:
            return f"what {silent} may hold of it has not been reported yet; try again soon"
        how = f"open /play/{row.session}"
        if self._desk.owner_is_gone(row) or self._is_to_replay(row):
            return f"its worker has died, and no player has said yet what it has seen: {how}"
        return f"no player has said yet what it has seen: {how}, or try again in some seconds"

    def _is_settled(self, holder: Holder) -> bool:
        worker, incarnation = holder
        if self._workers.is_gone(worker, incarnation):
            return True
        record = self._workers.find(worker)
        return record is not None and record.incarnation == incarnation and record.reported

    def _copy(self, row: Row) -> Copy | None:
        """Return the owner's copy, as its worker has said it."""
        worker = self._workers.find(row.owner)
        copies = () if worker is None else worker.copies
        return next((copy for copy in copies if copy.session == row.session and copy.phase != KEPT), None)

    def _is_to_replay(self, row: Row) -> bool:
        """Whether the owner's copy is retired still: it was granted the session by a failover, and has not heard."""
        copy = self._copy(row)
        return copy is not None and copy.phase == "retired" and copy.epoch < row.epoch

    def _remind(self, row: Row) -> None:
        """Tell an owner whose copy is retired, or that has none, that it owns the session: it replays, or is gone."""
        copy, next_block = self._copy(row), self._gateway().next_block(row.session)
        if next_block is None or self._workers.find(row.owner) is None or self._desk.owner_is_gone(row):
            return
        if copy is None:
            self._workers.send(row.owner, TakeOver(session=row.session, epoch=row.epoch, block=next_block))
        elif self._is_to_replay(row):
            reaches = self._gateway().log_reaches(row.session, copy.block)
            if reaches is not None and reaches < next_block:
                self._desk.owner_says_gone(row.session, row.epoch)
            else:
                self._workers.send(row.owner, TakeOver(session=row.session, epoch=row.epoch, block=next_block))
