"""The edge that runs workers on this machine: spawned processes, each joined by a unix socket in a private folder.

Every process is started in a session of its own, so that Ctrl-C reaches the server alone, which then ends
its workers in order.
"""

import asyncio
import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

import worldmove
from worldmove.errors import MessageError, UserError
from worldmove.worker.birth import birth_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import WorkerEnd, worker_end
from worldmove.worker.messages import Hello, Shutdown, ToServer, ToWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHostsConfig:
    """How workers are started. ``environment`` is added to that of this process."""

    worker: WorkerConfig
    folder: Path | None = None
    """Where the socket is; None: a private temporary folder, removed at the end."""
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Callable[[str, dict[str, object]], None] = lambda event, fields: None
    start_s: float = 120.0
    """How long a worker may take from its start to its hello."""
    hello_s: float = 10.0
    """How long a connection may take to say who it is."""
    stop_s: float = 5.0
    """How long a worker may take to end cleanly before it is killed."""


class AdoptedProcess:
    """A worker that an earlier server spawned (a ``WorkerProcess``).

    It is no child of this process, so its end has no status; a descriptor of the process itself still proves it,
    and its signals can reach no other that is given its number.
    """

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._note_end)

    @property
    def pid(self) -> int:
        return self._pid

    async def ended(self) -> None:
        await self._ended.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended.is_set():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def _note_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended.set()


def descriptor_of(pid: int, birth: str) -> int | None:
    """Return a descriptor of the process with this number and birth; None where it is proven dead."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    # Only now: from here on the number cannot be given to another while it is looked at.
    if birth_of(pid) == birth and not ended.poll(0):
        return descriptor
    os.close(descriptor)
    return None


def is_alive(pid: int, birth: str) -> bool:
    """Whether the process with this number and birth lives."""
    descriptor = descriptor_of(pid, birth)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def terminate(pid: int, birth: str) -> None:
    """Ask the process with this number and birth to end, if it lives."""
    descriptor = descriptor_of(pid, birth)
    if descriptor is not None:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        os.close(descriptor)


class LocalProcess:
    """One spawned worker (a ``WorkerProcess``)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        return await self._process.wait()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


class LocalLink:
    """The server's end of a worker's link, over whichever connection the worker has made last (a ``WorkerLink``)."""

    def __init__(self) -> None:
        self._connection: WorkerEnd | None = None

    def join(self, connection: WorkerEnd) -> None:
        """Use this connection from now on."""
        self.close()
        self._connection = connection

    def send(self, message: ToWorker) -> None:
        if self._connection is not None:
            self._connection.send(message)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(slots=True, kw_only=True)
class _Started:
    """One incarnation of one worker, from its spawn to its proven death."""

    process: LocalProcess | AdoptedProcess
    on_message: Callable[[ToServer], None]
    on_gone: Callable[[int | None], None]
    link: LocalLink
    ready: asyncio.Future[None]


class LocalHosts:
    """A ``Hosts`` of this machine."""

    def __init__(self, config: LocalHostsConfig) -> None:
        self._config = config
        self._run_dir: Path | None = None
        self._server: asyncio.Server | None = None
        self._started: dict[tuple[str, int], _Started] = {}
        self._watches: dict[tuple[str, int], asyncio.Task[None]] = {}

    @property
    def run_dir(self) -> Path | None:
        """The private folder of the socket; None while nothing was started."""
        return self._run_dir

    async def start(
        self,
        worker: str,
        incarnation: int,
        on_message: Callable[[ToServer], None],
        on_gone: Callable[[int | None], None],
    ) -> tuple[LocalProcess, LocalLink]:
        """Spawn a worker and return once it said hello, which ``on_message`` has then got.

        Raises UserError if it ends or stays silent before that.
        """
        process = await self._spawn(worker, incarnation, await self._listen())
        started = _Started(
            process=process,
            on_message=on_message,
            on_gone=on_gone,
            link=LocalLink(),
            ready=asyncio.get_running_loop().create_future(),
        )
        self._keep((worker, incarnation), started)
        try:
            async with asyncio.timeout(self._config.start_s):
                await started.ready
        except TimeoutError:
            process.kill()
            why = f"{worker} did not start within {self._config.start_s:.0f} s; see its log"
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
        ready = asyncio.get_running_loop().create_future()
        ready.set_result(None)
        process = AdoptedProcess(pid, descriptor)
        started = _Started(
            process=process,
            on_message=on_message,
            on_gone=on_gone,
            link=LocalLink(),
            ready=ready,
        )
        self._keep((worker, incarnation), started)
        return process, started.link

    async def listen(self) -> None:
        """Let workers say hello."""
        await self._listen()

    async def close(self) -> None:
        """End what is left: SIGTERM, then SIGKILL; remove the folder. Idempotent."""
        left = [started.process for started in self._started.values()]
        for process in left:
            process.terminate()
        try:
            async with asyncio.timeout(self._config.stop_s):
                await asyncio.gather(*(process.ended() for process in left))
        except TimeoutError:
            for process in left:
                process.kill()
        await asyncio.gather(*self._watches.values())
        self._watches.clear()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._run_dir is not None:
            (self._run_dir / "server.sock").unlink(missing_ok=True)
            if self._config.folder is None:
                shutil.rmtree(self._run_dir, ignore_errors=True)
            self._run_dir = None

    async def _listen(self) -> Path:
        if self._run_dir is None:
            # mkdtemp makes it 0700
            self._run_dir = self._config.folder or Path(tempfile.mkdtemp(prefix="worldmove-"))
            self._sweep(self._run_dir)
            self._server = await asyncio.start_unix_server(self._joined, self._run_dir / "server.sock")
            (self._run_dir / "server.sock").chmod(0o600)
        return self._run_dir / "server.sock"

    def _sweep(self, folder: Path) -> None:
        """Remove the sockets of workers that are proven dead."""
        alive = [f"{worker}-{incarnation}.sock" for worker, incarnation in self._started]
        for path in folder.glob("*-*.sock"):
            if path.name not in alive:
                path.unlink(missing_ok=True)

    def _keep(self, key: tuple[str, int], started: _Started) -> None:
        self._started[key] = started
        self._watches[key] = asyncio.create_task(self._watch(key, started))

    async def _spawn(self, worker: str, incarnation: int, socket_path: Path) -> LocalProcess:
        config = msgspec.structs.replace(
            self._config.worker, worker=worker, incarnation=incarnation, socket_path=str(socket_path)
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "worldmove.worker.process",
            msgspec.json.encode(config).decode(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environment(),
            start_new_session=True,
        )
        return LocalProcess(process)

    def _environment(self) -> dict[str, str]:
        """This process's, with this very package first on the path: a worker runs the code of its server."""
        variables = {**os.environ, **self._config.environment}
        paths = [str(Path(worldmove.__file__).parents[1]), variables.get("PYTHONPATH", "")]
        return variables | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: its first message is a hello of a worker that was started here."""
        link = worker_end(reader, writer)
        try:
            async with asyncio.timeout(self._config.hello_s):
                hello = await link.take()
            if isinstance(hello, Hello):
                await self._serve(link, hello)
        except MessageError as error:
            self._config.log("link_broken", {"why": str(error)})
        except TimeoutError:
            self._config.log("link_broken", {"why": f"no hello within {self._config.hello_s:g} s"})
        finally:
            link.close()

    async def _serve(self, connection: WorkerEnd, hello: Hello) -> None:
        started = self._started.get((hello.worker, hello.incarnation))
        if started is None or started.process.pid != hello.pid:
            # An incarnation before the one that is here: it can own nothing any more, and would ask for ever.
            self._config.log("stray_worker", {"worker": hello.worker, "incarnation": hello.incarnation})
            connection.send(Shutdown())
            await connection.drain()
            return
        started.link.join(connection)
        started.on_message(hello)
        if not started.ready.done():
            started.ready.set_result(None)
        await connection.take_all(started.on_message)

    async def _watch(self, key: tuple[str, int], started: _Started) -> None:
        """Wait for a process's end, which is the only proof of it."""
        status = await started.process.ended()
        del self._started[key]
        started.link.close()
        if not started.ready.done():
            why = f"{key[0]} ended with status {status} before it was ready; see its log"
            started.ready.set_exception(UserError(why, code="worker_start", status=503))
        started.on_gone(status)
