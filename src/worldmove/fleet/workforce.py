"""The workers' processes: adopted, started, started again after a death under the next incarnation, and ended.

A worker's incarnation is noted before its process is started, and its process before it can be given a session. So
what a later server finds noted without a process never held anything.
"""

import asyncio
from collections.abc import Callable

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.hosts import Hosts
from worldmove.fleet.notes import Notes, WorkerNote
from worldmove.fleet.views import WorkerState
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.background import Background
from worldmove.worker.messages import Hello, Shutdown, ToServer

Log = Callable[[str, dict[str, object]], None]


class Workforce:
    """Runs the processes of a table of workers."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        hosts: Hosts,
        workers: WorkerTable,
        notes: Notes,
        background: Background,
        on_message: Callable[[WorkerRecord, ToServer], None],
        on_gone: Callable[[WorkerRecord], None],
        log: Log,
    ) -> None:
        self._config = config
        self._hosts = hosts
        self._workers = workers
        self._notes = notes
        self._background = background
        self._on_message = on_message
        self._on_gone = on_gone
        self._log = log
        self.stopping = False
        self._has_adopted = False

    def adopt(self) -> None:
        """Take over every worker of an earlier server that lives; whoever does not is proven dead from here on."""
        for note in self._notes.workers():
            record = self._workers.remember(note.name, note.incarnation)
            if note.pid is None or not self._take_over(record, note.pid, note.birth):
                self._workers.gone(note.name, note.incarnation)
                self._log("worker_gone", {"worker": note.name, "incarnation": note.incarnation, "status": None})
                if note.name not in self._config.workers:
                    self._workers.leave_out(note.name)

    def _take_over(self, record: WorkerRecord, pid: int, birth: str) -> bool:
        adopted = self._hosts.adopt(
            record.name,
            record.incarnation,
            pid,
            birth,
            lambda message: self._heard(record, message),
            lambda status: self._gone(record, status),
        )
        if adopted is not None:
            self._has_adopted = True
            record.process, record.link = adopted
            self._log("worker_adopted", {"worker": record.name, "incarnation": record.incarnation, "pid": pid})
        return adopted is not None

    @property
    def has_adopted(self) -> bool:
        """Whether a worker of an earlier server was found alive."""
        return self._has_adopted

    async def start(self) -> None:
        """Have every worker run. Raises UserError if one cannot start.

        Returns once all have said hello; where some were adopted, at once: their worlds are waited for.
        """
        awaited = [record.name for record in self._workers.all() if record.state is WorkerState.AWAITED]
        missing = [name for name in self._config.workers if name not in awaited]
        if not awaited:
            await asyncio.gather(*(self._start(name) for name in missing))
            return
        await self._hosts.listen()
        for name in missing:
            self._background.start(f"start {name}", self._keep_starting(name, 0.0))

    async def stop(self) -> None:
        """End every worker cleanly, and kill what does not end. Idempotent."""
        self.stopping = True
        for record in self._workers.ready():
            self._workers.send(record.name, Shutdown())
        await self._hosts.close()

    async def _start(self, name: str) -> None:
        record = self._workers.begin(name)
        await self._note(WorkerNote(name=name, incarnation=record.incarnation))
        record.process, record.link = await self._hosts.start(
            name,
            record.incarnation,
            lambda message: self._heard(record, message),
            lambda status: self._gone(record, status),
        )
        birth = record.hello.birth if record.hello else ""
        pid = record.process.pid
        await self._note(WorkerNote(name=name, incarnation=record.incarnation, pid=pid, birth=birth))
        self._workers.ready_now(record)

    async def _note(self, note: WorkerNote) -> None:
        """Keep a note, however long it takes: what is not noted could not be found again, and is not used."""
        while True:
            try:
                return self._notes.keep_worker(note)
            except LedgerError as error:
                self._log("worker_not_noted", {"worker": note.name, "why": str(error)})
                await asyncio.sleep(self._config.recover_every_s)

    def _heard(self, record: WorkerRecord, message: ToServer) -> None:
        self._on_message(record, message)
        if isinstance(message, Hello) and record.state is WorkerState.AWAITED:
            self._workers.ready_now(record)

    def _gone(self, record: WorkerRecord, status: int | None) -> None:
        """A process is proven dead."""
        was_in_use = record.hello is not None or record.state is WorkerState.AWAITED
        self._workers.gone(record.name, record.incarnation)
        self._log("worker_gone", {"worker": record.name, "incarnation": record.incarnation, "status": status})
        if self.stopping:
            return
        self._on_gone(record)
        if self._config.restart and was_in_use and record.name in self._config.workers:
            again = self._keep_starting(record.name, self._config.restart_after_s)
            self._background.start(f"restart {record.name}", again)

    async def _keep_starting(self, name: str, after_s: float) -> None:
        """Start a worker, and again for as long as it does not come up: what is in the way may pass."""
        while True:
            await asyncio.sleep(after_s)
            after_s = min(max(2 * after_s, self._config.restart_after_s), self._config.restart_within_s)
            try:
                return await self._start(name)
            except (UserError, OSError) as error:
                why = {"worker": name, "why": str(error), "again_in_s": after_s}
                self._log("worker_not_restarted", why)
