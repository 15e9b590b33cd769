"""Which worker may keep a session's snapshots: by what is so now, and never by how an earlier try has ended."""

from worldmove.fleet.alike import alike
from worldmove.fleet.books import Books
from worldmove.fleet.second_copy import LONG_S, SecondCopy
from worldmove.fleet.succession import Succession, is_full
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT, Copy


class KeeperChoice:
    """For all sessions of one server. It changes nothing."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._second = SecondCopy(books)
        self._succession = Succession(books)

    def kept_by(self, session: str, worker: str) -> Copy | None:
        """Return what a worker keeps of a session; None where it has said nothing of it."""
        found = self._books.workers.find(worker)
        copies = () if found is None else found.copies
        return next((copy for copy in copies if (copy.session, copy.phase) == (session, KEPT)), None)

    def is_good(self, keeper: tuple[str, int], row: Row) -> bool:
        """Whether a keeper is still one: it answers, is not about to end, and is not who plays the session.

        What a silent one keeps it may never give, and one whose engine does not return can make no session of it: it
        stays there until another keeps a newer one. Where no other can, that engine may yet return.
        """
        worker = self._books.workers.find(keeper[0])
        there = self._books.workers.is_there(*keeper)
        if not there or worker is None or worker.leaving or worker.suspected or worker.name == row.owner:
            return False
        return not self._books.workers.is_stuck(worker, LONG_S) or not self._has_sound(row)

    def is_kept_elsewhere(self, row: Row, but: str) -> bool:
        """Whether a snapshot that counts is kept, however old: neither by ``but``, nor by who plays it."""
        return any(self._is_sound(worker) for worker, _ in self._second.kept(row, but))

    def may_renew(self, row: Row, but: str = "") -> bool:
        """Whether a newer snapshot can be had soon, as things are: its owner has room for one, and another worker.

        What is copied aside goes in a moment, and so does a copy that has retired; a worker that is silent, starts, or
        ends to be started anew may be there in a moment too. ``but``: one that ends once this is no more so; who ends
        only after that one will not be there before.
        """
        owner = self._books.workers.find(row.owner)
        if owner is None or is_full(owner):
            return False
        others = [worker for worker in self._books.workers.all() if worker is not owner and worker.name != but]
        there = [worker for worker in others if worker.hello is not None and not worker.leaving]
        known, ending = alike(there, owner.environment), self._books.workers.find(but)
        coming = [
            worker
            for worker in others
            if worker not in there
            and not (worker.leaving and ending is not None and not self._succession.ends_before(worker, ending))
        ]
        return bool(coming) or not all(is_full(worker) for worker in known)

    def able(self, owner: WorkerRecord) -> list[WorkerRecord]:
        """Return the other workers that compute as a session's owner does, and neither end nor are silent."""
        others = [worker for worker in self._books.workers.answering() if worker.name != owner.name]
        return alike(others, owner.environment)

    def best(self, session: str, able: list[WorkerRecord]) -> WorkerRecord | None:
        """Return the one with most room: first of all one that keeps it already. None where there is no room.

        It has to hold the newer one beside the older: of those without room one is asked only where nobody has any. One
        whose engine does not return is asked only where there is no other.
        """
        for some in (self._books.workers.sound(able), able):
            keeping = [worker for worker in some if self.kept_by(session, worker.name) is not None]
            roomy = [worker for worker in some if worker.room > 0]
            best = [worker for worker in keeping if worker.room > 0] or roomy or keeping
            if best:
                return max(best, key=lambda worker: (worker.room, self._kept_block(session, worker.name)))
        return None

    def _kept_block(self, session: str, worker: str) -> int:
        kept = self.kept_by(session, worker)
        return -1 if kept is None else kept.block

    def _has_sound(self, row: Row) -> bool:
        """Whether there is a worker that could keep a session, and whose engine is not known to be stuck."""
        owner = self._books.workers.find(row.owner)
        best = None if owner is None else self.best(row.session, self.able(owner))
        return best is not None and self._is_sound(best)

    def _is_sound(self, worker: WorkerRecord) -> bool:
        return not self._books.workers.is_stuck(worker)
