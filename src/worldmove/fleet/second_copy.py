"""Whether a protected session outlives the death of any one worker: said here, for the listing, metrics and drains.

It does while its owner plays it, and a worker beside that keeps a proven snapshot from which every list to now is
here. Only what is certain counts, so not:

1. A worker that is silent, is to end, or whose engine has been at one thing for ``LONG_S``: it may never give it.
2. A snapshot that its worker was told to let go of, or to make a copy of, until it has answered two beats since: the
   word and the report that follows it are on their way for so long. A worker reports what has changed before it answers
   a beat, however many it takes at once, so what it says of what came before a beat is here with its answer.
3. A retired copy, or one of a move: it goes, or changes hands, by rules of its own.

A death or silence counts from when it is known: at once where a process has ended, else after its lease.
"""

from worldmove.fleet.behind import PLAYED
from worldmove.fleet.books import Books
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import LIVE, WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker import inputs
from worldmove.worker.messages import KEPT, Copy

LONG_S = 30.0
"""An engine that is at one thing for so long is no keeper's; one that opens a world may well take some seconds."""
ON_ITS_WAY = "renewing: nobody beside its owner keeps a snapshot of it yet."


class SecondCopy:
    """Of all sessions of one server. It changes nothing."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def why_none(self, record: SessionRecord) -> str:
        """Return why the death of one worker may lose a session, as ``code: sentence``; empty where none does."""
        row = self._books.desk.row(record.name)
        if row is None or record.closing:
            return "not_open: it is being opened, or closed."
        if row.lost:
            return "lost: no copy of it is left."
        if record.ahead is not None:
            return "ledger_behind: the ledger has lost a write, and nobody takes it over."
        if record.resuming:
            return f"resuming: {record.resuming_why}."
        return self._why_not_played(row) or self._why_not_kept(record, row)

    def kept(self, row: Row, but: str = "") -> tuple[tuple[WorkerRecord, Copy], ...]:
        """Return every snapshot that counts, and who keeps it: neither the owner, nor ``but``."""
        held = self._held(row)
        return tuple((worker, copy) for worker, copy in held if worker.name != but and not self._flaw(worker, copy))

    def certain(self, row: Row) -> tuple[tuple[WorkerRecord, Copy], ...]:
        """Return every snapshot that its keeper is certain to give, and who that is; its lists may be lost."""
        next_block = self._books.gateway().next_block(row.session)
        held = [] if next_block is None else [one for one in self._held(row) if one[1].block <= next_block]
        return tuple((worker, copy) for worker, copy in held if not self._why_not_given(worker, copy))

    def lacks_lists(self, copy: Copy) -> bool:
        """Whether nobody ever goes on from a snapshot: lists that it needs are lost, or too many."""
        reaches, next_block = self._lists(copy)
        if reaches is None or next_block is None:
            return False
        return reaches < next_block or reaches - copy.block > inputs.MAX_LISTS

    def _why_not_played(self, row: Row) -> str:
        """Its owner has to say that it plays it, in its epoch: it may have been granted it for a copy that has gone."""
        if self._books.desk.owner_is_missing(row) or self._is_told(row.owner, row.session, LIVE):
            return f"in_doubt: {row.owner}, which plays it, is gone or does not answer; another copy is to go on."
        held = self._books.workers.holders(row.session, PLAYED)
        if any(worker.name == row.owner and copy.epoch == row.epoch for worker, copy in held):
            return ""
        return f"in_doubt: {row.owner} was granted it, and has yet to say that it plays it."

    def _why_not_kept(self, record: SessionRecord, row: Row) -> str:
        if self.kept(row):
            return ""
        flaws = [
            f"{worker.name} keeps a snapshot of it, {self._flaw(worker, copy)}" for worker, copy in self._held(row)
        ]
        if record.unkept_why:
            return record.unkept_why
        if record.renewal_waits and record.moving:
            return "moving: a snapshot is due, and is kept once the move has ended."
        return f"unsafe: {flaws[0]}." if flaws else ON_ITS_WAY

    def _held(self, row: Row) -> tuple[tuple[WorkerRecord, Copy], ...]:
        held = self._books.workers.holders(row.session, (KEPT,))
        return tuple((worker, copy) for worker, copy in held if worker.name != row.owner)

    def _flaw(self, worker: WorkerRecord, copy: Copy) -> str:
        """Return why a snapshot does not count; empty where it does."""
        reaches, next_block = self._lists(copy)
        if why := self._why_not_given(worker, copy):
            return why
        if reaches is None or next_block is None or not copy.block <= next_block <= reaches:
            return "and not every list since is here"
        return "which is too old" if self.lacks_lists(copy) else ""

    def _why_not_given(self, worker: WorkerRecord, copy: Copy) -> str:
        """Return why its keeper may never give a snapshot; empty where it is certain to."""
        if worker.state is not WorkerState.READY or worker.suspected:
            return "and does not answer"
        if worker.leaving:
            return "and was told to end"
        if self._books.workers.is_stuck(worker, LONG_S):
            return "and its engine does not return"
        return "and was told to let it go" if worker.is_giving_up(copy.session, KEPT) else ""

    def _lists(self, copy: Copy) -> tuple[int | None, int | None]:
        """Return how far the lists from a snapshot on reach, and the next block to be shown."""
        gateway = self._books.gateway()
        return gateway.log_reaches(copy.session, copy.block), gateway.next_block(copy.session)

    def _is_told(self, worker: str, session: str, phase: str) -> bool:
        found = self._books.workers.find(worker)
        return found is not None and found.is_giving_up(session, phase)
