"""Looks after sessions that nobody plays: whose owner is dead, does not answer, or holds no copy any more."""

import asyncio
from collections.abc import Callable

from worldmove.fleet.behind import ahead
from worldmove.fleet.books import Books
from worldmove.fleet.containment import AGAIN_S
from worldmove.fleet.leases import Leases
from worldmove.fleet.ports import Owner
from worldmove.fleet.recovery import NO_KEEPERS, Keepers, Recovery
from worldmove.fleet.sessions import SessionRecord
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.move.messages import Gone
from worldmove.worker.background import Background
from worldmove.worker.messages import KEPT, Copy, GiveUp, TakeOver

Log = Callable[[str, dict[str, object]], None]


class Caretaker:
    """One recovery for each such session, and the leases that tell of owners that do not answer."""

    def __init__(
        self,
        books: Books,
        background: Background,
        log: Log,
        on_failover: Callable[[Row, str, Copy, TakeOver], None] = lambda row, worker, copy, taken: None,
        on_suspected: Callable[[str], None] = lambda worker: None,
    ) -> None:
        """``on_failover`` hears of a copy that has taken over (``fleet.recovery``)."""
        self._on_suspected = on_suspected
        self._books = books
        self._background = background
        self._log = log
        self._recovery = Recovery(
            config=books.config,
            workers=books.workers,
            desk=books.desk,
            gateway=books.gateway,
            why_failed=self._why_failed,
            keepers=self._keepers,
            is_left_alone=self._is_left_alone,
            on_failover=on_failover,
        )
        self._leases = Leases(
            config=books.config, workers=books.workers, on_suspected=self._suspected, on_answered=self._answers_again
        )
        self._recovering: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    def start(self) -> None:
        """Look after what is here, and watch the leases from now on."""
        self.look()
        self._background.start("leases", self._watch_leases())

    async def _watch_leases(self) -> None:
        """Whatever fails at one session that nobody plays, the leases of all workers are watched again."""
        while True:
            with self._books.containment.of("leases", ""):
                await self._leases.run()
            await asyncio.sleep(AGAIN_S)

    def stop(self) -> None:
        """Begin nothing any more."""
        self._stopping = True

    def look(self) -> None:
        """Begin to recover every session that nobody plays, unless that is under way."""
        self._recovering = {session: task for session, task in self._recovering.items() if not task.done()}
        for record in self._books.sessions.all():
            row = self._books.desk.row(record.name)
            self._note_ahead(record, row)
            is_over = row is None or row.lost or self._is_left_alone(record.name)
            orphan = not is_over and row is not None and self._books.desk.owner_is_missing(row)
            if not orphan:
                record.missing_since = None
            elif record.missing_since is None:
                record.missing_since = asyncio.get_running_loop().time()
            if orphan and not self._stopping and record.name not in self._recovering:
                self._recovering[record.name] = self._recover(record.name)

    def _recover(self, session: str) -> asyncio.Task[None]:
        def failed(error: BaseException) -> None:
            self._books.containment.failed("recover", session, error)
            asyncio.get_running_loop().call_later(AGAIN_S, self.look)

        return self._background.start(f"recover {session}", self._recovery.recover(session), contained=failed)

    def answered(self, worker: WorkerRecord, number: int) -> None:
        """A worker has answered a beat."""
        self._leases.answered(worker, number)

    def says_gone(self, worker: WorkerRecord, message: Gone) -> None:
        """A worker says that it holds no copy of what it owns."""
        owner = self._books.desk.owner(message.session)
        if owner == Owner(worker=worker.name, incarnation=worker.incarnation, epoch=message.owned_epoch):
            self._books.desk.owner_says_gone(message.session, message.owned_epoch)
            self.look()

    def disown(self, session: str, epoch: int, why: str) -> None:
        """What an epoch's owner has made is none of this world's blocks: nothing of it is shown, and it is let go.

        It says itself that it holds none any more; then the next snapshot takes over, or the session is lost.
        """
        owner = self._books.desk.owner(session)
        if owner is None or owner.epoch != epoch:
            return
        self._books.gateway().close_epoch(session, epoch)
        self._books.workers.send(owner.worker, GiveUp(session=session, epoch=epoch, why=why))

    def note_empty_owner(self, worker: WorkerRecord) -> None:
        """Whoever reports no copy of what it owns has none: it reports a copy before it asks for an epoch to play.

        It was granted an epoch after it had let its copy go, and no word of it may have reached it. This needs the
        order of a link (``fleet.hosts.Hosts``): a report that came after the question it was sent before would be
        taken for the news that the copy is gone.
        """
        held = {copy.session: None for copy in worker.copies if copy.phase != KEPT}
        for record in self._books.sessions.all():
            row = self._books.desk.row(record.name)
            owns = row is not None and (row.owner, row.incarnation) == (worker.name, worker.incarnation)
            if row is not None and owns and not record.closing and record.name not in held:
                self._books.desk.owner_says_gone(record.name, row.epoch)
        self.look()

    def note_empty_owners(self) -> None:
        """The same, of every worker, by what each has last reported."""
        for worker in self._books.workers.ready():
            self.note_empty_owner(worker)

    def _why_failed(self, session: str) -> str:
        record = self._books.sessions.find(session)
        return record.failed_why if record else ""

    def _note_ahead(self, record: SessionRecord, row: Row | None) -> None:
        """Note, and say, where a worker knows of a later epoch than the ledger."""
        alive = [worker for worker in self._books.workers.all() if worker.state is not WorkerState.GONE]
        found = None if row is None or row.lost or record.closing else ahead(row, alive)
        if found is not None and row is not None and found != record.ahead:
            said: dict[str, object] = {"session": record.name, "worker": found.worker, "epoch": found.epoch}
            self._log("ledger_behind", {**said, "owner": row.owner, "ledger_epoch": row.epoch})
        record.ahead = found

    def _is_left_alone(self, session: str) -> bool:
        """Whether a session is being ended, or has been: its row may outlive it where the ledger does not answer.

        Or the ledger is behind what a worker knows of it: whatever it granted now, it would grant a second time.
        """
        record = self._books.sessions.find(session)
        return record is None or record.closing or record.ahead is not None

    def _keepers(self, session: str) -> Keepers:
        record = self._books.sessions.find(session)
        if record is None or record.keeper is None or self._books.workers.is_gone(*record.keeper):
            return NO_KEEPERS
        return Keepers(names=(record.keeper[0],), is_awaited=record.keeping)

    def _suspected(self, worker: WorkerRecord) -> None:
        """A worker's lease has lapsed: what may be done for its sessions without it is done."""
        self._log("worker_suspected", {"worker": worker.name, "incarnation": worker.incarnation})
        self._on_suspected(worker.name)
        self.look()

    def _answers_again(self, worker: WorkerRecord) -> None:
        self._log("worker_answers_again", {"worker": worker.name, "incarnation": worker.incarnation})
        self.look()
