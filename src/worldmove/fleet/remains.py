"""What is left at a worker that is to end, and whether anything of it is needed yet: the ledger and the copies say so.

A session whose engine does not return from a step comes to no boundary. Where another worker keeps a snapshot of it,
the end of its worker is what it goes on by: it is not waited for.
"""

from worldmove.fleet.books import Books
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.renewal import TOO_LARGE
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import KEPT, Copy

NEEDED = ("shadow", "following", "live", "frozen", "superseded")


class Remains:
    """Of one worker. It changes nothing."""

    def __init__(self, books: Books, worker: WorkerRecord) -> None:
        self._books = books
        self._worker = worker
        self._choice = KeeperChoice(books)

    def owned(self) -> list[SessionRecord]:
        """Return the sessions that this worker owns, and that can be moved."""
        if self._books.workers.is_gone(self._worker.name, self._worker.incarnation):
            return []
        return [record for record in self._books.sessions.all() if self._owns(record)]

    def is_needed(self) -> bool:
        """Whether it plays something, or will, or something may be had of it alone: a retired copy, or a snapshot."""
        if self._books.workers.is_gone(self._worker.name, self._worker.incarnation):
            return False
        for copy in self._worker.copies:
            record = self._books.sessions.find(copy.session)
            if record is not None and self._may_be_needed(copy, record):
                return True
        if any(self._is_opened_here(record) for record in self._books.sessions.all()):
            return True
        return not all(self.goes_on_without(record) for record in self.owned())

    def goes_on_without(self, record: SessionRecord) -> bool:
        """Whether a session comes to no boundary here, and goes on elsewhere as soon as this worker has ended."""
        is_past_hope = self._books.workers.is_past_hope(self._worker, record.name)
        return is_past_hope and self.is_kept_elsewhere(record.name)

    def is_kept_elsewhere(self, session: str) -> bool:
        row = self._books.desk.row(session)
        return row is not None and self._choice.is_kept_elsewhere(row, but=self._worker.name)

    def _owns(self, record: SessionRecord) -> bool:
        row = self._books.desk.row(record.name)
        if row is None or row.lost or record.closing or record.throwaway:
            return False
        return (row.owner, row.incarnation) == (self._worker.name, self._worker.incarnation)

    def _may_be_needed(self, copy: Copy, record: SessionRecord) -> bool:
        """Whether a session may yet go on from a copy here that it does not own: who has it may come to nothing.

        So one that was its owner's waits until a newer block was shown. Then it has retired, and is let go; but for
        that of a protected session, which is waited for as a snapshot is from then on.
        """
        row = self._books.desk.row(record.name)
        if row is None or row.lost or record.closing:
            return False
        if copy.phase == KEPT:
            return self._is_wanted(record)
        if copy.phase == "retired":
            return not self.is_kept_elsewhere(record.name) and (not row.shown or self._is_wanted(record))
        return copy.phase in NEEDED and not self._owns(record)

    def _is_opened_here(self, record: SessionRecord) -> bool:
        """Whether a session is being begun here: it has no row yet, and who asked for it is told that it plays."""
        here = (record.worker, record.incarnation) == (self._worker.name, self._worker.incarnation)
        return here and not record.throwaway and self._books.desk.row(record.name) is None

    def _is_wanted(self, record: SessionRecord) -> bool:
        """Whether a snapshot here is waited for, until another worker keeps a newer one.

        Not where none ever will, as it is; but always while the session's owner is missing: it goes on from this one.
        """
        row = self._books.desk.row(record.name)
        if row is None or row.lost:
            return False
        is_too_large = record.unkept_why.partition(":")[0] == TOO_LARGE
        return self._books.desk.owner_is_missing(row) or (
            self._choice.may_renew(row, but=self._worker.name) and not is_too_large
        )
