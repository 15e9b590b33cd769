"""Lets go what a newer snapshot has made needless, and only for a keeper that is alive.

The newest is what a worker says that it keeps, of all snapshots that count (``fleet.second_copy``): whoever is expected
to keep the next one, and however renewals go. What is older takes the very room that others lack. Of those of which
none counts, for lists that are lost, one stays.

Its keeper may die while the word is on its way, and who it is told may sleep with the word in its socket. So:

1. The newest one's keeper has answered a beat that it was sent after this server had heard of its snapshot.
2. Whoever is told lets go until ``let_go_s`` after that beat was sent, and not later: by its own clock, from a beat of
   its own that it has answered before it was told. What comes later is as if it had not come; it is told again at that
   keeper's next sign of life. A copy that has retired since the snapshot was taken stays: it is the newer one.
3. An earlier keeper that may still come to keep what it was pulling needs the lists until the one that is expected
   instead keeps the newest, and that word has reached it.
4. While nobody plays the session as far as is known, all stays: one of them is gone on from, and may prove unusable.

``let_go_s`` is two beats' time, of which a beat and its answer take next to none. Where all of the keeper's last beats
have taken longer, it is longer too, and never more than a lease: else nobody would ever be told anything in time.

So a keeper whose death leaves nobody with a snapshot died within ``let_go_s`` before the older one was let go. No order
of messages does better than some such time: who lets go cannot know who dies in that instant.
"""

import asyncio
import math
from collections.abc import Sequence

from worldmove.fleet.books import Books
from worldmove.fleet.second_copy import SecondCopy
from worldmove.fleet.sessions import Confirmed, EarlierKeeper, SessionRecord
from worldmove.fleet.workers import RETIRED, WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import KEPT, Copy, InTime, LetGo, Pass

WAYS = 4
"""As old as a beat's way there and back a sign of life is when it has come, and a word that follows from it is on its
way too: in half of the time the one, in the other half the other.
"""


class Relief:
    """Of all sessions of one server."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._second = SecondCopy(books)

    def look(self, record: SessionRecord, row: Row) -> None:
        """Tell the others, once it may be; who holds something yet at the keeper's next sign of life is told again."""
        self._forget_reached(record)
        newest = None if self._books.desk.owner_is_missing(row) else self._newest(record, row)
        if newest is None:
            record.confirmed = None
            return
        keeper, kept = newest
        older, earlier = self._older(record, row, keeper, kept), self._earlier(record, keeper)
        passing = [] if self._second.lacks_lists(kept) else self._retired_before(row, kept)
        if not (older or earlier or passing):
            record.confirmed = None
        elif self._has_lived_on(record, keeper):
            within_s = self._let_go_s(keeper) - _lived_s(keeper)
            for worker in {worker.name: worker for worker in (*older, *earlier)}.values():
                only = InTime(beat=worker.beat_answered, within_s=within_s)
                self._books.workers.send(worker.name, LetGo(session=record.name, only=only))
            for worker in passing:
                only = InTime(beat=worker.beat_answered, within_s=within_s)
                self._books.workers.send(worker.name, Pass(session=record.name, only=only))
            self._note_told(record, earlier)
            record.confirmed = _confirmed(keeper)

    def _newest(self, record: SessionRecord, row: Row) -> tuple[WorkerRecord, Copy] | None:
        """Return the newest snapshot that counts, and who keeps it; of equal ones that of who is expected to go on.

        Where lists that each needs are lost, that of the latest block: any other needs these as well, and more.
        """
        if record.resuming or record.ahead is not None:
            return None
        counting = self._second.kept(row)
        if counting:
            return max(counting, key=lambda found: (_age(found[1]), self._is_known(record, found[0])))
        lacking = [(worker, copy) for worker, copy in self._second.certain(row) if self._second.lacks_lists(copy)]
        return max(lacking, key=lambda found: (found[1].block, self._is_known(record, found[0])), default=None)

    def _is_known(self, record: SessionRecord, worker: WorkerRecord) -> tuple[bool, bool]:
        return _is_of(record.confirmed, worker), record.keeper == _known(worker)

    def _has_lived_on(self, record: SessionRecord, keeper: WorkerRecord) -> bool:
        """Whether a keeper has lived after the word of its snapshot, and lately. What it has had before still counts
        once it keeps a newer one.
        """
        confirmed = record.confirmed
        if confirmed is None or not _is_of(confirmed, keeper):
            confirmed = record.confirmed = _confirmed(keeper)
        return keeper.beat_answered > confirmed.beat and _lived_s(keeper) <= self._let_go_s(keeper) / 2

    def _let_go_s(self, keeper: WorkerRecord) -> float:
        """Return how long after a keeper's sign of life others may let go for it."""
        config = self._books.config
        return min(max(config.let_go_s, WAYS * keeper.least_way_s), max(config.let_go_s, config.worker_lease_s))

    def _older(self, record: SessionRecord, row: Row, keeper: WorkerRecord, kept: Copy) -> list[WorkerRecord]:
        """Return who else keeps a snapshot that is no newer, or plays the session; not who is just getting another."""
        held = self._books.workers.holders(record.name, (KEPT,))
        others = [(worker, copy) for worker, copy in held if worker is not keeper]
        lacks = self._second.lacks_lists(kept)
        older = [worker for worker, copy in others if worker.name == row.owner or _is_older(copy, kept, lacks=lacks)]
        return [worker for worker in older if not (record.keeping and record.keeper == _known(worker))]

    def _earlier(self, record: SessionRecord, keeper: WorkerRecord) -> list[WorkerRecord]:
        """Return who may still come to keep what it was pulling, once who is expected instead keeps the newest."""
        if record.keeper != _known(keeper):
            return []
        there = [one for one in record.earlier_keepers if self._books.workers.is_there(one.worker, one.incarnation)]
        return [worker for one in there if (worker := self._books.workers.find(one.worker)) is not None]

    def _retired_before(self, row: Row, kept: Copy) -> list[WorkerRecord]:
        """Return who holds a copy beside the owner's that had retired, or is of a block, before the snapshot's."""
        held = self._books.workers.holders(row.session, (RETIRED,))
        return [worker for worker, copy in held if worker.name != row.owner and _is_before(copy, kept)]

    def _note_told(self, record: SessionRecord, told: Sequence[WorkerRecord]) -> None:
        beats = {worker.name: worker.beat_sent for worker in told}
        record.earlier_keepers = tuple(
            one.told(beats[one.worker]) if one.worker in beats else one for one in record.earlier_keepers
        )

    def _forget_reached(self, record: SessionRecord) -> None:
        """What an earlier keeper has come to keep by now it has said; else it has forgotten the session."""
        record.earlier_keepers = tuple(one for one in record.earlier_keepers if not self._is_reached(one))

    def _is_reached(self, earlier: EarlierKeeper) -> bool:
        worker = self._books.workers.find(earlier.worker)
        return worker is not None and earlier.told_at is not None and worker.beat_answered > earlier.told_at


def _age(copy: Copy) -> tuple[int, int]:
    return copy.epoch, copy.block


def _is_older(copy: Copy, kept: Copy, *, lacks: bool) -> bool:
    """Whether a snapshot saves nothing that another does not; ``lacks``: lists that the other needs are lost."""
    return copy.block <= kept.block if lacks else _age(copy) <= _age(kept)


def _is_before(copy: Copy, kept: Copy) -> bool:
    return copy.epoch < kept.epoch or copy.block <= kept.block


def _known(worker: WorkerRecord) -> tuple[str, int]:
    return worker.name, worker.incarnation


def _is_of(confirmed: Confirmed | None, keeper: WorkerRecord) -> bool:
    return confirmed is not None and (confirmed.worker, confirmed.incarnation) == _known(keeper)


def _confirmed(keeper: WorkerRecord) -> Confirmed:
    return Confirmed(worker=keeper.name, incarnation=keeper.incarnation, beat=keeper.beat_sent)


def _lived_s(keeper: WorkerRecord) -> float:
    """Return how long ago a worker was alive for certain, in seconds; infinite where it has answered no beat."""
    return math.inf if keeper.alive_at is None else asyncio.get_running_loop().time() - keeper.alive_at
