"""Second copies that yield their slots: a world that would end with its worker goes before what only a death needs.

A snapshot, or a retired copy that stays in place of one, may yield where another world can go nowhere else and is kept
nowhere else, no room is to come, and its own session outlives this: its owner plays it, and stays, or ends only after
who leaves. In this order:

1. The slot is promised: nothing is opened in it, and no snapshot is put there.
2. What lies there is let go. From that instant nobody says that its session is protected by it (``fleet.second_copy``).
3. The world is moved there. Once that has ended, however it did, nothing is promised any more, and the other session's
   snapshot is kept anew wherever there is room.

That a session has not come to a worker says little: a slot was taken just before, or somebody moved it, and that
passes. Nothing yields again only where what was in its way lasts, or where too much has yielded to it in vain.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from worldmove.fleet.books import Books
from worldmove.fleet.renewal import TOO_LARGE
from worldmove.fleet.succession import Succession
from worldmove.fleet.workers import LIVE, RETIRED, WorkerRecord
from worldmove.worker.messages import KEPT, Copy, LetGo, Pass

Log = Callable[[str, dict[str, object]], None]

LASTING = ("environment", "state_refused", TOO_LARGE)
"""Why a session does not come to a worker, however often it is tried, and whatever room there is."""
MOST_IN_VAIN = 3
"""So much yields to a session at one worker and it does not come: what is in its way passes too seldom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A slot that is freed for a session."""

    at: WorkerRecord
    copy: tuple[str, str]
    """What lies there: of which session, in which phase."""
    told_at: int
    """The newest beat that its worker had been sent when it was told to let go of what lies there."""

    @property
    def is_on_its_way(self) -> bool:
        """Whether the word, or the report that follows it, may not have come yet."""
        return self.at.beat_answered < self.told_at + 2


class Yielding:
    """For the sessions of one worker that is to end."""

    def __init__(self, books: Books, succession: Succession, leaving: WorkerRecord, log: Log) -> None:
        self._books = books
        self._succession = succession
        self._leaving = leaving
        self._log = log
        self._promises: dict[str, Promise] = {}
        self._in_vain = Counter[tuple[str, str, int]]()
        """How often something at a worker has yielded to a session that did not come there."""

    def make_way(self, session: str, havens: Sequence[WorkerRecord]) -> None:
        """Have something at one of these workers yield to a session, unless it is just being let go at one of them.

        Who ends, or has fallen silent, may never read the word: nothing is promised there any more.
        """
        promise = self._promises.get(session)
        if promise is not None and promise.is_on_its_way and any(to is promise.at for to in havens):
            return
        self.ended(session)
        taken = [(promise.at, promise.copy) for promise in self._promises.values()]
        able = [to for to in havens if self._in_vain[session, to.name, to.incarnation] < MOST_IN_VAIN]
        held = [(to, copy) for to in self._books.workers.sound(able) for copy in to.copies]
        found = [(to, c) for to, c in held if (to, (c.session, c.phase)) not in taken and self._may_yield(c)]
        if found:
            to, copy = max(found, key=lambda one: (not one[0].leaving, self._is_least(one[1]), -one[0].num_live))
            self._promises[session] = Promise(at=to, copy=(copy.session, copy.phase), told_at=to.beat_sent)
            to.promised[session] = None
            asked = LetGo(session=copy.session) if copy.phase == KEPT else Pass(session=copy.session)
            self._books.workers.send(to.name, asked)
            self._log("copy_yields", {"session": copy.session, "worker": to.name, "phase": copy.phase, "to": session})

    def did_not_come(self, session: str, to: WorkerRecord, why: str) -> None:
        """A session was not moved to a worker; ``why`` is a word."""
        key, promise = (session, to.name, to.incarnation), self._promises.get(session)
        if why in LASTING:
            self._in_vain[key] = MOST_IN_VAIN
        elif promise is not None and promise.at is to:
            self._in_vain[key] += 1

    def ended(self, session: str) -> None:
        """A session needs no slot any more, or has it."""
        promise = self._promises.pop(session, None)
        if promise is not None:
            promise.at.promised.pop(session, None)

    def ended_but(self, sessions: Sequence[str]) -> None:
        """The same, of all that are not among these."""
        for session in [session for session in self._promises if session not in sessions]:
            self.ended(session)

    def _may_yield(self, copy: Copy) -> bool:
        """Whether a session goes on without a copy: nothing but another death loses it."""
        record, row = self._books.sessions.find(copy.session), self._books.desk.row(copy.session)
        is_second = copy.phase == KEPT or (copy.phase == RETIRED and copy.stays)
        if not is_second or record is None or row is None or record.resuming or record.moving:
            return False
        owner = self._books.workers.find(row.owner)
        if owner is None or row.attempt is not None or self._books.desk.owner_is_missing(row):
            return False
        played = [held.epoch for held in owner.copies if (held.session, held.phase) == (row.session, LIVE)]
        outlasts = self._succession.outlasts(owner, self._leaving) and not self._books.workers.is_stuck(owner)
        return played == [row.epoch] and outlasts

    def _is_least(self, copy: Copy) -> bool:
        """Whether nobody counts on a copy, or another has one as well."""
        num_kept = len(self._books.workers.holders(copy.session, (KEPT,), answering=True))
        return copy.phase == RETIRED or num_kept > 1
