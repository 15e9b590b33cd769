"""The workers' processes: started, started again after a death under the next incarnation, and ended."""

import asyncio
from collections.abc import Callable

from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.ports import Hosts
from worldmove.fleet.workers import WorkerRecord, WorkerTable
from worldmove.worker.background import Background
from worldmove.worker.messages import Shutdown, ToServer

Log = Callable[[str, dict[str, object]], None]


class Workforce:
    """Runs the processes of a table of workers."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        hosts: Hosts,
        workers: WorkerTable,
        background: Background,
        on_message: Callable[[WorkerRecord, ToServer], None],
        on_gone: Callable[[WorkerRecord], None],
        log: Log,
    ) -> None:
        self._config = config
        self._hosts = hosts
        self._workers = workers
        self._background = background
        self._on_message = on_message
        self._on_gone = on_gone
        self._log = log
        self.stopping = False

    async def start(self) -> None:
        """Start every worker, and return once all have said hello. Raises UserError if one cannot start."""
        await asyncio.gather(*(self._start(name) for name in self._config.workers))

    async def stop(self) -> None:
        """End every worker cleanly, and kill what does not end. Idempotent."""
        self.stopping = True
        for record in self._workers.ready():
            self._workers.send(record.name, Shutdown())
        await self._hosts.close()

    async def _start(self, name: str) -> None:
        record = self._workers.begin(name)
        record.process, record.link = await self._hosts.start(
            name,
            record.incarnation,
            lambda message: self._on_message(record, message),
            lambda status: self._gone(record, status),
        )
        self._workers.ready_now(record)

    def _gone(self, record: WorkerRecord, status: int) -> None:
        """A process is proven dead by its exit status."""
        self._workers.gone(record.name, record.incarnation)
        self._log("worker_gone", {"worker": record.name, "incarnation": record.incarnation, "status": status})
        if self.stopping:
            return
        self._on_gone(record)
        if self._config.restart and record.hello is not None:
            self._background.start(f"restart {record.name}", self._restart(record.name))

    async def _restart(self, name: str) -> None:
        await asyncio.sleep(self._config.restart_after_s)
        try:
            await self._start(name)
        except UserError as error:
            self._log("worker_not_restarted", {"worker": name, "why": str(error)})
