"""Lets go what a newer snapshot has made needless, and only for a keeper that is alive.

That keeper may die while the word is on its way, and who it is told may sleep with the word in its socket. So:

1. The newer one's keeper has answered a beat that it was sent after this server had heard of its snapshot.
2. Whoever is told lets go until ``let_go_s`` after that beat was sent, and not later: by its own clock, from a beat of
   its own that it has answered before it was told. What comes later is as if it had not come; it is told again at that
   keeper's next sign of life. A copy that has retired since the snapshot was taken stays: it is the newer one.
3. An earlier keeper that may still come to keep what it was pulling needs the lists until that word has reached it.

``let_go_s`` is two beats' time, of which a beat and its answer take next to none. Where all of the keeper's last beats
have taken longer, it is longer too, and never more than a lease: else nobody would ever be told anything in time.

So a keeper whose death leaves nobody with a snapshot died within ``let_go_s`` before the older one was let go. No order
of messages does better than some such time: who lets go cannot know who dies in that instant.
"""

import asyncio

from worldmove.fleet.books import Books
from worldmove.fleet.sessions import Confirmed, EarlierKeeper, SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import KEPT, Copy, InTime, LetGo, Pass

WAYS = 4
"""As old as a beat's way there and back a sign of life is when it has come, and a word that follows from it is on its
way too: in half of the time the one, in the other half the other.
"""


class Relief:
    """Of all sessions of one server."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def kept(self, record: SessionRecord, keeper: WorkerRecord) -> None:
        """A keeper has a newer snapshot than all others. What one has had before still counts from then on."""
        confirmed = record.confirmed
        if confirmed is None or (confirmed.worker, confirmed.incarnation) != (keeper.name, keeper.incarnation):
            record.confirmed = Confirmed(worker=keeper.name, incarnation=keeper.incarnation, beat=keeper.beat_sent)

    def take_up(self, record: SessionRecord) -> None:
        """Where others keep no newer one than the keeper, of an earlier server's say, they are to be told as well.

        They would hold the very room that the next one lacks.
        """
        keeping = self._books.workers.holders(record.name, (KEPT,))
        held = {worker.name: (copy.epoch, copy.block) for worker, copy in keeping}
        keeper = None if record.keeper is None else self._books.workers.find(record.keeper[0])
        if record.confirmed is not None or keeper is None or keeper.name not in held or len(held) < 2:
            return
        if held[keeper.name] == max(held.values()):
            self.kept(record, keeper)

    def look(self, record: SessionRecord, owner: str) -> None:
        """Tell the others, once it may be; who holds something yet at the keeper's next sign of life is told again."""
        self._forget_reached(record)
        keeper, lived_s = self._keeper(record), None
        if keeper is not None and keeper.alive_at is not None:
            lived_s = asyncio.get_running_loop().time() - keeper.alive_at
        if keeper is None or lived_s is None or lived_s > self._let_go_s(keeper) / 2:
            return
        within_s = self._let_go_s(keeper) - lived_s
        keeping = [worker for worker in self._keeping(record) if worker.name != keeper.name]
        staying = self._retired_before(record.name, keeper, owner)
        for worker in keeping:
            self._books.workers.send(worker.name, LetGo(session=record.name, only=_in_time(worker, within_s)))
        for worker in staying:
            self._books.workers.send(worker.name, Pass(session=record.name, only=_in_time(worker, within_s)))
        again = Confirmed(worker=keeper.name, incarnation=keeper.incarnation, beat=keeper.beat_sent)
        record.confirmed = again if keeping or staying else None

    def _let_go_s(self, keeper: WorkerRecord) -> float:
        """Return how long after a keeper's sign of life others may let go for it."""
        config = self._books.config
        return min(max(config.let_go_s, WAYS * keeper.least_way_s), max(config.let_go_s, config.worker_lease_s))

    def _retired_before(self, session: str, keeper: WorkerRecord, owner: str) -> list[WorkerRecord]:
        """Return who holds a copy beside the owner's that had retired, or is of a block, before the snapshot's."""
        kept = next((copy for copy in keeper.copies if (copy.session, copy.phase) == (session, KEPT)), None)
        held = [worker for worker in self._books.workers.holding(session) if worker.name != owner]
        return [] if kept is None else [worker for worker in held if _has_earlier(worker, kept)]

    def _keeper(self, record: SessionRecord) -> WorkerRecord | None:
        """Return who keeps the newest snapshot, once it has lived on after the word of it."""
        confirmed = record.confirmed
        if confirmed is None or record.keeper != (confirmed.worker, confirmed.incarnation):
            return None
        keeping = [worker for worker, _ in self._books.workers.holders(record.name, (KEPT,))]
        alive = [worker for worker in keeping if worker.beat_answered > confirmed.beat]
        return next((worker for worker in alive if worker.name == confirmed.worker), None)

    def _keeping(self, record: SessionRecord) -> list[WorkerRecord]:
        """Return who keeps a snapshot, or may still come to; these are noted to have been told."""
        workers = {worker.name: worker for worker, _ in self._books.workers.holders(record.name, (KEPT,))}
        noted = []
        for earlier in record.earlier_keepers:
            worker = self._books.workers.find(earlier.worker)
            if worker is not None and self._books.workers.is_there(earlier.worker, earlier.incarnation):
                workers[worker.name] = worker
                noted.append(earlier.told(worker.beat_sent))
        record.earlier_keepers = tuple(noted)
        return list(workers.values())

    def _forget_reached(self, record: SessionRecord) -> None:
        """What an earlier keeper has come to keep by now it has said; else it has forgotten the session."""
        record.earlier_keepers = tuple(one for one in record.earlier_keepers if not self._is_reached(one))

    def _is_reached(self, earlier: EarlierKeeper) -> bool:
        worker = self._books.workers.find(earlier.worker)
        return worker is not None and earlier.told_at is not None and worker.beat_answered > earlier.told_at


def _has_earlier(worker: WorkerRecord, kept: Copy) -> bool:
    copies = [copy for copy in worker.copies if copy.session == kept.session and copy.phase != KEPT]
    return any(copy.epoch < kept.epoch or copy.block <= kept.block for copy in copies)


def _in_time(worker: WorkerRecord, within_s: float) -> InTime:
    return InTime(beat=worker.beat_answered, within_s=within_s)
