"""Workers that were told to end (SIGTERM): their sessions are moved away first, and what they keep is kept elsewhere.

A worker that is leaving gets nothing new. Each session that it plays, or that a move under way brings to it, is moved
away (``fleet.drain``), also where a block would come late by that: late is better than lost. Then the worker waits
until its retired copies are needed no more and nobody keeps a snapshot there alone. Once that gets on no more it ends
in any case, and what it still plays then goes the way of every session whose worker ends.
"""

import asyncio
from collections.abc import Callable

from worldmove.fleet.books import Books
from worldmove.fleet.drain import Drain
from worldmove.fleet.mover import Mover
from worldmove.fleet.workers import WorkerRecord
from worldmove.fleet.yielding import Log
from worldmove.worker.background import Background
from worldmove.worker.messages import Shutdown


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
            worker.leaving, worker.leaving_since = True, asyncio.get_running_loop().time()
            self._log("worker_leaving", {"worker": worker.name, "incarnation": worker.incarnation})
            self._on_leaving()
            self._background.start(f"leave {worker.name}", self._empty(worker))

    async def _empty(self, worker: WorkerRecord) -> None:
        """Move everything away that can be; then let the worker end."""
        worker.is_emptied = True
        try:
            left = await Drain(self._books, self._mover, self._background, worker, self._log).run()
        finally:
            worker.is_emptied = False
        self._log("worker_left", {"worker": worker.name, "incarnation": worker.incarnation, "still_there": left})
        self._books.workers.send(worker.name, Shutdown())
