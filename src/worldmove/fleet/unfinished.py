"""Moves that an earlier server left under way: closed in the ledger, and reported as the row has it.

That a closed attempt is not granted is certain only once its destination has said that it holds no shadow, or is dead,
and nothing that it has asked before is on its way to the ledger any more. Until then it may ask for its commit, and is
granted it where the owner has died meanwhile.
"""

from dataclasses import replace

from worldmove.fleet.closing import closing
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.grants import is_granted
from worldmove.fleet.history import History
from worldmove.fleet.notes import MoveNote
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import may_hold_shadow
from worldmove.move.ledger_row import Row

LOOK_S = 0.25
REASON = "server_ended"


class Unfinished:
    """Finds out how such moves ended."""

    def __init__(self, *, workers: WorkerTable, desk: LedgerDesk, history: History) -> None:
        self._workers = workers
        self._desk = desk
        self._history = history

    async def settle(self, note: MoveNote) -> None:
        """Return once it is known how a move ended, or its session is forgotten."""
        while (row := self._desk.row(note.session)) is not None:
            if row.attempt is not None and row.attempt.attempt == note.attempt:
                await self.close(row)
            row, note = self._desk.row(note.session) or row, self._history.unfinished(note.number) or note
            lives_at = None if self._desk.owner_is_gone(row) else row.owner
            report = outcome_of(note, row, lives_at, may_commit=self._may_commit(note))
            final = report.outcome is not Outcome.IN_DOUBT
            self._history.settle(note.number, report, final=final)
            if final:
                return
            await self._workers.changed(LOOK_S)

    def _may_commit(self, note: MoveNote) -> bool:
        """Whether the destination may hold a shadow, or has asked for its commit while it did."""
        worker = self._workers.find(note.destination)
        if self._desk.may_yet_commit(note.attempt):
            return True
        return worker is not None and may_hold_shadow(worker, note.session)

    async def close(self, row: Row) -> None:
        """Close an attempt that nobody conducts. Its source goes on; its destination, in doubt, asks by itself."""
        if row.attempt is not None:
            await self._desk.ask(closing(row.session, row.attempt.attempt, row.epoch))


def outcome_of(note: MoveNote, row: Row, lives_at: str | None, *, may_commit: bool) -> MoveReport:
    """Return what the row says of a move. While its owner is dead, or may die, a late commit may still be granted."""
    known = replace(note.unfinished(""), epoch=row.epoch, runs_at=lives_at)
    if is_granted(note, row, before=note.granted):
        return replace(known, outcome=Outcome.COMMITTED, detail=f"Moved to {note.destination}")
    if row.lost:
        return replace(known, outcome=Outcome.LOST, detail="no copy is left")
    is_open = row.attempt is not None and row.attempt.attempt == note.attempt
    if lives_at is None or is_open:
        return replace(known, detail="the server ended in the middle of it, and no copy has taken over yet")
    if may_commit and row.epoch == note.epoch:
        return replace(known, detail="the server ended in the middle of it, and its destination has not answered yet")
    return replace(known, outcome=Outcome.ABORTED, detail="the server ended in the middle of it")
