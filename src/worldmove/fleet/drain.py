"""One worker that was told to end: its sessions are moved away, some at a time, for as long as that gets on.

None waits for another that cannot be moved, or not now: each is tried again in its turn, and elsewhere where there is
an elsewhere. One that has not gone in half of the time, and does not get on, is moved by a boundary copy, which waits
for nothing; where that comes to nothing, since its pause is too long, in whichever way is best again.

Where there is no room nothing is tried, and nothing rests for that: whatever has room from then on is gone to at once.
While another worker is about to be there, that is waited for (``fleet.succession``); else one of which there is no
snapshot takes the slot of another's (``fleet.yielding``).

A session that comes to no boundary, and goes on without this worker (``fleet.remains``), is not waited for. One that
would be lost is, for all of the time, and so is one that waits while its engine is at something else, an opening say:
that ends, and then it is moved.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial

from worldmove.errors import UserError
from worldmove.fleet.books import Books
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.mover import Mover
from worldmove.fleet.remains import Remains
from worldmove.fleet.reports import Outcome
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.succession import Succession
from worldmove.fleet.workers import WorkerRecord
from worldmove.fleet.yielding import Log, Yielding
from worldmove.move.strategy import Strategy
from worldmove.worker.background import Background

LOOK_S = 0.1
AT_ONCE = 4
"""How many sessions are moved away at a time: most of a move is waiting, for a turn at a busy engine or a boundary.

Fewer where moves come to nothing by that: what they wait for may be one engine, which takes its time for each.
"""
LONG_TRIES = 3
"""So often something may be on its way for long and come to nothing: a later try does not count as getting on."""
MOST_DOUBLINGS = 4
"""How often the time is doubled after which a session is tried again: what was given up may still keep an engine."""
NO_ROOM = "No other worker that computes as this one does has a free slot."


class Drain:
    """One worker's."""

    def __init__(self, books: Books, mover: Mover, background: Background, worker: WorkerRecord, log: Log) -> None:
        self._books = books
        self._mover = mover
        self._background = background
        self._remains = Remains(books, worker)
        self._succession = Succession(books)
        self._yielding = Yielding(books, self._succession, worker, log)
        self._worker = worker
        self._log = log
        self._under_way: dict[str, str] = {}
        """Where to each session is on its way."""
        self._tries = Counter[str]()
        self._begun_at: dict[str, float] = {}
        """When each was tried first."""
        self._was_plain: dict[str, bool] = {}
        """Whether each was tried last by a boundary copy for want of time."""
        self._rests_until: dict[str, float] = {}
        """What was in the way of one may pass: it is not tried again before, but where there was no room then."""
        self._roomy: dict[str, list[tuple[str, int]]] = {}
        """Where there was room when each was tried last."""
        self._refused = Counter[tuple[str, str, int]]()
        """How often a session did not come to a worker."""
        self._in_vain = dict[str, float]()
        """How often a session was on its way for long, and has come nowhere; for less, for a part of once."""
        self._got_on = set[str]()
        """Whose tries under way have got on at all."""
        self._num_steps: dict[str, int] = {}
        """How far whatever is on its way had got at the last look."""
        self._at_once = AT_ONCE
        self._said: dict[str, str] = {}
        """Why each was not moved, as it was said last."""

    async def run(self) -> list[str]:
        """Return what is still there once nothing of it is needed any more, or nothing has gone for ``leave_s``.

        Time in which what is on its way gets on does not count: a state may be of any size, and a path slow. Nor does
        that in which a worker is awaited, up to ``return_s``, or before there was room for whatever is tried first.
        Moves that are under way then are conducted to their ends: else nobody would ever say what became of them.
        """
        ends_at, awaits_until = self._now() + self._leave_s, self._now() + self._books.config.return_s
        while self._remains.is_needed() and self._now() < ends_at:
            num_left, num_begun = len(self._remains.owned()), len(self._begun_at)
            is_awaited = self._now() < awaits_until and self._is_another_awaited()
            self._yielding.ended_but([record.name for record in self._remains.owned()])
            self._begin_moves(may_make_way=not is_awaited)
            await self._books.workers.changed(LOOK_S)
            if self._gets_on() or len(self._remains.owned()) < num_left or len(self._begun_at) > num_begun:
                ends_at, awaits_until = self._now() + self._leave_s, self._now() + self._books.config.return_s
            elif self._now() < awaits_until and self._is_another_awaited():
                ends_at = self._now() + self._leave_s
        self._yielding.ended_but([])
        return [record.name for record in self._remains.owned()]

    def _is_another_awaited(self) -> bool:
        """Whether room is to come that helps: what comes to no boundary goes nowhere by that."""
        owned, is_past_hope = self._remains.owned(), self._books.workers.is_past_hope
        is_of_use = not owned or not all(is_past_hope(self._worker, record.name) for record in owned)
        return is_of_use and self._succession.is_awaited(self._worker)

    @property
    def _leave_s(self) -> float:
        return self._books.config.leave_s

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _gets_on(self) -> bool:
        """Whether a move that may get there has got on since the last look, or a snapshot for which a copy waits."""
        before = self._num_steps
        moves = {name: self._mover.num_steps(name) for name in self._under_way}
        self._num_steps = moves | self._pulled()
        getting_on = {what for what, num_steps in self._num_steps.items() if num_steps > before.get(what, num_steps)}
        self._got_on |= getting_on & moves.keys()
        return any(self._in_vain.get(what, 0.0) < LONG_TRIES for what in getting_on)

    def _pulled(self) -> dict[str, int]:
        """Return how far those are who pull a snapshot just now for which a copy here waits, if that may come about."""
        waiting = [self._books.sessions.find(copy.session) for copy in self._worker.copies]
        pulling = [record for record in waiting if record is not None and record.keeping]
        names = {r.keeper[0] for r in pulling if r.keeper is not None and r.num_unkept < LONG_TRIES}
        keepers = [self._books.workers.find(name) for name in sorted(names)]
        return {f"at {worker.name}": worker.num_pulled for worker in keepers if worker is not None}

    def _begin_moves(self, *, may_make_way: bool) -> None:
        """Begin what may be under way beside what is: first who was tried least often.

        ``may_make_way``: no room is to come by itself.
        """
        waiting = [
            record
            for record in self._remains.owned()
            if record.name not in self._under_way and not self._remains.goes_on_without(record)
        ]
        for record in sorted(waiting, key=lambda record: self._tries[record.name]):
            if len(self._under_way) >= self._at_once:
                break
            roomy = self._with_room(record.name)
            if not roomy:
                self._say(record.name, "", NO_ROOM)
                if may_make_way and not self._remains.is_kept_elsewhere(record.name):
                    self._make_way(record.name)
            elif self._may_try(record.name, roomy):
                self._begin(record, roomy)

    def _begin(self, record: SessionRecord, roomy: list[WorkerRecord]) -> None:
        self._begun_at.setdefault(record.name, self._now())
        self._tries[record.name] += 1
        self._roomy[record.name] = [(to.name, to.incarnation) for to in roomy]
        to = self._best(record.name, roomy)
        self._under_way[record.name], to.coming[record.name] = to.name, None
        self._background.start(f"move away {record.name}", self._away(record, to))

    def _may_try(self, session: str, roomy: list[WorkerRecord]) -> bool:
        """Whether a session has rested, or there is room where there was none when it was tried last."""
        before = self._roomy.get(session, [])
        has_rested = self._rests_until.get(session, 0.0) <= self._now()
        return has_rested or any((to.name, to.incarnation) not in before for to in roomy)

    def _make_way(self, session: str) -> None:
        """Have a slot freed wherever a session may come."""
        self._yielding.make_way(session, self._succession.could_be_havens(self._worker))

    def _with_room(self, session: str) -> list[WorkerRecord]:
        """Return who has room for a session beside what is on its way there, also from others that are to end.

        Not one whose engine is stuck where another has any.
        """
        havens = self._succession.havens(self._worker)
        return list(self._books.workers.sound(to for to in havens if to.room_for(session) > 0))

    def _best(self, session: str, roomy: list[WorkerRecord]) -> WorkerRecord:
        """Return where a session is to go: where it was refused least often, and then where there is most room."""
        refused = self._refused
        return max(
            roomy,
            key=lambda to: (-refused[session, to.name, to.incarnation], to.room_for(session)),
        )

    async def _away(self, record: SessionRecord, to: WorkerRecord) -> None:
        """Try once; what is in the way may pass."""
        is_plain = self._is_plain(record.name)
        self._was_plain[record.name] = is_plain
        record.urgent, begun_at = True, self._now()
        self._got_on.discard(record.name)
        try:
            code, said = await self._moved(record.name, to.name, is_plain=is_plain)
            if said:
                self._yielding.did_not_come(record.name, to, code)
        finally:
            record.urgent = False
            del self._under_way[record.name]
            to.coming.pop(record.name, None)
            self._yielding.ended(record.name)
        if said:
            if record.name in self._got_on:
                share = min(1.0, (self._now() - begun_at) / (self._leave_s / 2))
                self._in_vain[record.name] = self._in_vain.get(record.name, 0.0) + share
            self._refused[record.name, to.name, to.incarnation] += 1
            if is_plain or not self._is_plain(record.name):  # one that was given up for a plain one goes on at once
                rests_s = self._books.config.recover_every_s * 2 ** min(self._tries[record.name] - 1, MOST_DOUBLINGS)
                self._rests_until[record.name] = self._now() + rests_s
            self._say(record.name, to.name, said)

    def _say(self, session: str, to: str, why: str) -> None:
        if why != self._said.get(session):
            self._said[session] = why
            self._log("not_moved_away", {"session": session, "to": to, "why": why})

    async def _moved(self, session: str, to: str, *, is_plain: bool) -> tuple[str, str]:
        """Move a session, in whichever way is best for half of its time, or while that gets on.

        Return why it was not, as a word and a sentence; empty where it was.
        """
        strategy = Strategy.BOUNDARY_COPY if is_plain else None
        giving_up = None
        if is_plain:
            await self._cancelled(session)  # somebody else's move, which is as slow as it is asked to be
        else:
            giving_up = self._background.start(f"give up moving {session}", self._give_up(session))
        try:
            made = await self._mover.move(session, to, damage=False, strategy=strategy)
        except UserError as error:
            return error.code, str(error)
        finally:
            if giving_up is not None:
                giving_up.cancel()
        if made.outcome is Outcome.ABORTED:
            self._at_once = max(1, self._at_once // 2)
        return ("", "") if made.outcome is Outcome.COMMITTED else (made.reason, f"{made.reason}: {made.detail}")

    def _is_plain(self, session: str) -> bool:
        is_late = self._now() >= self._begun_at[session] + self._leave_s / 2
        return is_late and not self._was_plain.get(session, False)

    async def _give_up(self, session: str) -> None:
        """Cancel a move once neither end has got on with it for half of the time, whatever else they do."""
        try:
            async with while_it_gets_on(partial(self._mover.num_steps, session), self._leave_s / 2):
                await asyncio.Event().wait()
        except TimeoutError:
            await self._cancelled(session)

    async def _cancelled(self, session: str) -> None:
        with suppress(UserError):  # it has ended by itself
            await self._mover.cancel(session)
