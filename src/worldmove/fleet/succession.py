"""Workers that end, or start: which of them are there in a moment, and which of several ends first.

Each is started anew once it has ended. Where several are to end they would wait for each other's room, so they go one
after another, first who was told so first:

1. Who starts is there in a moment, and so is who is to end and plays nothing. Who is to end, and plays something, waits
   for those, and for who goes before it.
2. Who plays something and has room nowhere moves it to those that are to end after it: then it plays nothing, and ends.
   Whoever starts may yet not come up.
3. Who plays nothing waits with what it holds of others for whoever could hold it instead; but not for who itself waits
   for an end: who has room nowhere for what it plays, or holds something as well and comes after it.
"""

from worldmove.fleet.alike import alike
from worldmove.fleet.books import Books
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import KEPT

LASTING = ("live", KEPT)
"""Phases of copies that stay where they are, for all that is known."""


class Succession:
    """Of all workers of one server. It changes nothing."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def is_awaited(self, leaving: WorkerRecord) -> bool:
        """Whether a worker that is to end waits for another, which is there in a moment or ends before it."""
        return self._is_later(leaving) or any(self._comes(worker, leaving) for worker in self._others(leaving))

    def havens(self, leaving: WorkerRecord) -> list[WorkerRecord]:
        """Return where the sessions of a worker that is to end may go, whether there is room just now or not.

        To those that compute as it does, if there are any; to such as are to end only where no other has any room.
        """
        able = self._able(leaving)
        if any(worker.slots_free > 0 for worker in able) or self._is_later(leaving):
            return able
        return self._ending_later(leaving)

    def could_be_havens(self, leaving: WorkerRecord) -> list[WorkerRecord]:
        """Return where they could go, if there were room: first of all those that stay."""
        return self._able(leaving) + ([] if self._is_later(leaving) else self._ending_later(leaving))

    def ends_before(self, worker: WorkerRecord, other: WorkerRecord) -> bool:
        """Whether one that is to end does without waiting for another that is to end, and that plays nothing."""
        if self._plays(worker):
            answering = self._books.workers.answering()
            return any(not is_full(to) for to in alike(answering, worker.environment))
        return not worker.copies or self._precedes(worker, other)

    def outlasts(self, worker: WorkerRecord, leaving: WorkerRecord) -> bool:
        """Whether one is there yet when another has ended that is to end: it stays, or waits for that one."""
        if worker.state is not WorkerState.READY or worker.suspected or worker.name == leaving.name:
            return False
        return not worker.leaving or self._precedes(leaving, worker)

    def _able(self, leaving: WorkerRecord) -> list[WorkerRecord]:
        answering = self._books.workers.answering()
        return alike(answering, leaving.environment) or list(answering)

    def _ending_later(self, leaving: WorkerRecord) -> list[WorkerRecord]:
        """Return those that play something, and are to end: where none goes before, all of them end later."""
        return [worker for worker in self._others(leaving) if worker.is_emptied and self._plays_on(worker, leaving)]

    def _comes(self, worker: WorkerRecord, leaving: WorkerRecord) -> bool:
        """Whether a worker starts, or is to end and plays nothing. One that starts may compute as the other does."""
        if worker.state is WorkerState.GONE:
            return self._books.config.restart and worker.name in self._books.config.workers
        if worker.state is not WorkerState.READY:
            return True
        return self._is_ending(worker, leaving) and not self._plays(worker)

    def _is_later(self, leaving: WorkerRecord) -> bool:
        """Whether another that is to end, and plays something, goes before."""
        others = self._others(leaving)
        return any(self._plays_on(worker, leaving) and self._precedes(worker, leaving) for worker in others)

    def _plays_on(self, worker: WorkerRecord, leaving: WorkerRecord) -> bool:
        return self._is_ending(worker, leaving) and self._plays(worker)

    def _is_ending(self, worker: WorkerRecord, leaving: WorkerRecord) -> bool:
        """Whether another is to end as well, answers, and computes as one does."""
        is_there = worker.state is WorkerState.READY and worker.leaving and not worker.suspected
        return is_there and bool(alike([worker], leaving.environment))

    def _plays(self, worker: WorkerRecord) -> bool:
        rows = [self._books.desk.row(record.name) for record in self._books.sessions.all()]
        key = (worker.name, worker.incarnation)
        return any(row is not None and not row.lost and (row.owner, row.incarnation) == key for row in rows)

    def _precedes(self, worker: WorkerRecord, other: WorkerRecord) -> bool:
        return (worker.leaving_since, worker.name) < (other.leaving_since, other.name)

    def _others(self, leaving: WorkerRecord) -> list[WorkerRecord]:
        return [worker for worker in self._books.workers.all() if worker.name != leaving.name]


def is_full(worker: WorkerRecord) -> bool:
    """Whether each of its slots has a session that is played there, or a snapshot that is kept."""
    num_lasting = sum(copy.phase in LASTING for copy in worker.copies)
    return worker.hello is not None and num_lasting >= worker.hello.num_slots
