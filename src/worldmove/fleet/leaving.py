"""Workers that were told to end (SIGTERM): their sessions are moved away first, and what they keep is kept elsewhere.

A worker that is leaving gets nothing new. Each session that it plays is moved to where there is most room, one after
the other, also where a block would come late by that: late is better than lost. Then the worker waits until its retired
copies are needed no more and nobody keeps a snapshot there alone. After a time it ends in any case, and what it still
plays then goes the way of every session whose worker ends.
"""

import asyncio
from collections.abc import Callable

from worldmove.errors import UserError
from worldmove.fleet.books import Books
from worldmove.fleet.mover import Mover
from worldmove.fleet.reports import Outcome
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.background import Background
from worldmove.worker.messages import KEPT, Shutdown

LOOK_S = 0.1
PLAYED = ("live", "frozen", "superseded")
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
        try:
            async with asyncio.timeout(self._books.config.leave_s):
                while (record := self._next(worker)) is not None:
                    await self._move(record)
                while self._is_needed(worker):
                    await self._books.workers.changed(LOOK_S)
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

    async def _move(self, record: SessionRecord) -> None:
        """Try once; then wait a little, for what stands in the way may pass."""
        record.urgent = True
        try:
            to = self._books.workers.with_most_room()
            made = await self._mover.move(record.name, to.name, damage=False)
            said = "" if made.outcome is Outcome.COMMITTED else f"{made.reason}: {made.detail}"
        except UserError as error:
            said = str(error)
        finally:
            record.urgent = False
        if said:
            self._log("not_moved_away", {"session": record.name, "why": said})
            await asyncio.sleep(self._books.config.recover_every_s)

    def _is_needed(self, worker: WorkerRecord) -> bool:
        """Whether something may still be had of it alone: a retired copy, or a snapshot of a protected session."""
        if self._books.workers.is_gone(worker.name, worker.incarnation):
            return False
        for copy in worker.copies:
            record = self._books.sessions.find(copy.session)
            if copy.phase == "retired" or (copy.phase == KEPT and record is not None and not record.unprotected_why):
                return True
        return False
