"""Workers that were told to end (SIGTERM): their sessions are moved away first, and what they keep is kept elsewhere.

A worker that is leaving gets nothing new. Each session that it plays, or that a move under way brings to it, is moved
to where there is most room, one after the other, also where a block would come late by that: late is better than lost.
One that has not gone in half of the time is moved by a boundary copy, which waits for nothing. Then the worker waits
until its retired copies are needed no more and nobody keeps a snapshot there alone. After a time it ends in any case,
and what it still plays then goes the way of every session whose worker ends; a move under way is conducted to its end.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from worldmove.errors import UserError
from worldmove.fleet.books import Books
from worldmove.fleet.mover import Mover
from worldmove.fleet.reports import Outcome
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.strategy import Strategy
from worldmove.worker.background import Background
from worldmove.worker.messages import KEPT, Shutdown

LOOK_S = 0.1
PLAYED = ("live", "frozen", "superseded")
NEEDED = ("shadow", "following", "retired")
Log = Callable[[str, dict[str, object]], None]


class Leavers:
    """One controller's."""

    def __init__(
        self, books: Books, mover: Mover, background: Background, *, on_leaving: Callable[[], None], log: Log
    ) -> None:
        """``on_leaving`` hears of each worker that is leaving: what it keeps is to be kept elsewhere."""
        self._books = books
        self._mover = mover
        self._background = background
        self._on_leaving = on_leaving
        self._log = log
        self.stopping = False
        """The server ends: every worker does, and nothing is moved for that."""

    def leaves(self, worker: WorkerRecord) -> None:
        """A worker was told to end. Said again, over a new link say, it goes on as it does."""
        if self.stopping:
            self._books.workers.send(worker.name, Shutdown())
        elif not worker.leaving:
            worker.leaving = True
            self._log("worker_leaving", {"worker": worker.name, "incarnation": worker.incarnation})
            self._on_leaving()
            self._background.start(f"leave {worker.name}", self._empty(worker))

    async def _empty(self, worker: WorkerRecord) -> None:
        """Move everything away, within a time; then let the worker end."""
        ends_at = asyncio.get_running_loop().time() + self._books.config.leave_s
        try:
            async with asyncio.timeout_at(ends_at):
                while self._is_needed(worker):
                    record = self._next(worker)
                    if record is None:
                        await self._books.workers.changed(LOOK_S)
                    else:
                        await self._move(record, ends_at - self._books.config.leave_s / 2)
        except TimeoutError:
            pass  # what it plays still ends with it
        left = [copy.session for copy in worker.copies if copy.phase in PLAYED]
        self._log("worker_left", {"worker": worker.name, "incarnation": worker.incarnation, "still_there": left})
        self._books.workers.send(worker.name, Shutdown())

    def _next(self, worker: WorkerRecord) -> SessionRecord | None:
        """Return a session that this worker owns, and that can be moved."""
        if self._books.workers.is_gone(worker.name, worker.incarnation):
            return None
        for record in self._books.sessions.all():
            row = self._books.desk.row(record.name)
            owns = row is not None and (row.owner, row.incarnation) == (worker.name, worker.incarnation)
            if row is not None and owns and not (row.lost or record.closing or record.throwaway):
                return record
        return None

    async def _move(self, record: SessionRecord, plain_from: float) -> None:
        """Try once, until ``plain_from`` in whichever way is best; then wait a little, for what is in the way may pass.

        Whoever waits no longer leaves the move to its end: else nobody would ever say what became of it.
        """
        is_plain = asyncio.get_running_loop().time() >= plain_from
        strategy = Strategy.BOUNDARY_COPY if is_plain else None
        moving = self._background.start(f"move away {record.name}", self._moved(record, strategy))
        if is_plain:
            return await asyncio.shield(moving)
        try:
            async with asyncio.timeout_at(plain_from):
                return await asyncio.shield(moving)
        except TimeoutError:
            with suppress(UserError):  # it has ended by itself
                await self._mover.cancel(record.name)

    async def _moved(self, record: SessionRecord, strategy: Strategy | None) -> None:
        record.urgent = True
        try:
            to = self._books.workers.with_most_room()
            made = await self._mover.move(record.name, to.name, damage=False, strategy=strategy)
            said = "" if made.outcome is Outcome.COMMITTED else f"{made.reason}: {made.detail}"
        except UserError as error:
            said = str(error)
        finally:
            record.urgent = False
        if said:
            self._log("not_moved_away", {"session": record.name, "why": said})
            await asyncio.sleep(self._books.config.recover_every_s)

    def _is_needed(self, worker: WorkerRecord) -> bool:
        """Whether it plays something, or will, or something may be had of it alone: a retired copy, or a snapshot."""
        if self._books.workers.is_gone(worker.name, worker.incarnation):
            return False
        for copy in worker.copies:
            record = self._books.sessions.find(copy.session)
            if copy.phase in NEEDED or (copy.phase == KEPT and record is not None and not record.unprotected_why):
                return True
        return self._next(worker) is not None
