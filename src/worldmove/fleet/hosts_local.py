"""The edge that runs workers on this machine: spawned processes, each joined by a unix socket in a private folder.

Every process is started in a session of its own, so that Ctrl-C reaches the server alone, which then ends
its workers in order.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import worldmove
from worldmove.errors import UserError
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.local_door import Doorstep, LocalDoor
from worldmove.fleet.local_effort import effort_of
from worldmove.fleet.local_link import LocalLink
from worldmove.fleet.local_process import AdoptedProcess, LocalProcess, descriptor_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import WorkerEnd
from worldmove.worker.messages import Hello, Shutdown, ToServer


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHostsConfig:
    """How workers are started. ``environment`` is added to that of this process."""

    worker: WorkerConfig
    folder: Path | None = None
    """Where the socket is; None: a private temporary folder, removed at the end."""
    step: Doorstep | None = None
    """That socket, where workers wait at it already (``local_door.doorstep``)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    of_workers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The same for one worker, by its name."""
    log: Callable[[str, dict[str, object]], None] = lambda event, fields: None
    start_s: float = 120.0
    """How long a worker may do nothing, from its start to its hello: what there is to do may take any time, and many
    that start at once share the cores.
    """
    hello_s: float = 10.0
    """How long a connection may take to say who it is."""
    stop_s: float = 5.0
    """How long a worker may take to end cleanly before it is killed."""


@dataclass(slots=True, kw_only=True)
class _Started:
    """One incarnation of one worker, from its spawn to its proven death."""

    process: LocalProcess | AdoptedProcess
    on_message: Callable[[ToServer], None]
    on_gone: Callable[[int | None], None]
    link: LocalLink
    ready: asyncio.Future[None]
    has_come: bool = True
    """Whether it is known to be this server's: it was started by it, or has said hello to it."""


class LocalHosts:
    """A ``Hosts`` of this machine."""

    def __init__(self, config: LocalHostsConfig) -> None:
        self._config = config
        self._door = LocalDoor(
            folder=config.folder, hello_s=config.hello_s, log=config.log, serve=self._serve, step=config.step
        )
        self._started: dict[tuple[str, int], _Started] = {}
        self._watches: dict[tuple[str, int], asyncio.Task[None]] = {}

    @property
    def run_dir(self) -> Path | None:
        """The private folder of the socket; None while nothing was started."""
        return self._door.run_dir

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[LocalProcess, LocalLink]:
        """Spawn a worker and return once it said hello, which ``on_message`` has then got.

        Raises UserError if it ends before that, or computes nothing for a while.
        """
        process = await self._spawn(worker, incarnation, await self._listen())
        started = self._keep((worker, incarnation), process, on_message, on_gone)
        try:
            async with while_it_gets_on(lambda: effort_of(process.pid), self._config.start_s):
                await started.ready
        except TimeoutError:
            process.kill()
            why = f"{worker} did not start, and has done nothing for {self._config.start_s:.0f} s; see its log"
            raise UserError(why, code="worker_start", status=503) from None
        return process, started.link

    def adopt(
        self,
        worker: str,
        incarnation: int,
        pid: int,
        birth: str,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[AdoptedProcess, LocalLink] | None:
        """Take over a worker that an earlier server started; None if it is proven dead."""
        descriptor = descriptor_of(pid, birth)
        if descriptor is None:
            return None
        process = AdoptedProcess(pid, descriptor)
        started = self._keep((worker, incarnation), process, on_message, on_gone)
        started.ready.set_result(None)
        started.has_come = False
        return process, started.link

    async def listen(self) -> None:
        """Let workers say hello."""
        await self._listen()

    async def close(self) -> None:
        """End what is left: SIGTERM, then SIGKILL; remove the folder. Idempotent.

        Not who was adopted and has never come: it may be another server's, whose folder this one's is a copy of, and
        else it ends by itself without one.
        """
        left = [started.process for started in self._started.values() if started.has_come]
        for process in left:
            process.terminate()
        try:
            async with asyncio.timeout(self._config.stop_s):
                await asyncio.gather(*(process.ended() for process in left))
        except TimeoutError:
            for process in left:
                process.kill()
        watches = tuple(self._watches.values())
        for key, started in self._started.items():
            if not started.has_come:
                self._watches[key].cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        self._watches.clear()
        self._door.close()

    async def _listen(self) -> Path:
        return await self._door.open(f"{worker}-{incarnation}.sock" for worker, incarnation in self._started)

    def _keep(
        self,
        key: tuple[str, int],
        process: LocalProcess | AdoptedProcess,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> _Started:
        started = self._started[key] = _Started(
            process=process,
            on_message=on_message,
            on_gone=on_gone,
            link=LocalLink(),
            ready=asyncio.get_running_loop().create_future(),
        )
        self._watches[key] = asyncio.create_task(self._watch(key, started))
        return started

    async def _spawn(self, worker: str, incarnation: int, socket_path: Path) -> LocalProcess:
        config = msgspec.structs.replace(
            self._config.worker, worker=worker, incarnation=incarnation, socket_path=str(socket_path)
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "worldmove.worker",
            msgspec.json.encode(config).decode(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environment(worker),
            start_new_session=True,
        )
        return LocalProcess(process)

    def _environment(self, worker: str) -> dict[str, str]:
        """This process's, with this very package first on the path: a worker runs the code of its server."""
        own = self._config.of_workers.get(worker, {})
        variables = {**os.environ, **self._config.environment, **own}
        paths = [str(Path(worldmove.__file__).parents[1]), variables.get("PYTHONPATH", "")]
        return variables | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

    async def _serve(self, connection: WorkerEnd, hello: Hello) -> None:
        started = self._started.get((hello.worker, hello.incarnation))
        if started is None or started.process.pid != hello.pid:
            # An incarnation before the one that is here: it can own nothing any more, and would ask for ever.
            self._config.log("stray_worker", {"worker": hello.worker, "incarnation": hello.incarnation})
            connection.send(Shutdown())
            await connection.drain()
            return
        started.has_come = True
        started.link.join(connection)
        started.on_message(hello)
        if not started.ready.done():
            started.ready.set_result(None)

        def heard(message: ToServer) -> None:
            if not started.link.has_left(connection):
                started.on_message(message)

        await connection.take_all(heard)

    async def _watch(self, key: tuple[str, int], started: _Started) -> None:
        """Wait for a process's end, which is the only proof of it."""
        status = await started.process.ended()
        del self._started[key], self._watches[key]
        started.link.close()
        if not started.ready.done():
            why = f"{key[0]} ended with status {status} before it was ready; see its log"
            started.ready.set_exception(UserError(why, code="worker_start", status=503))
        started.on_gone(status)
