"""Workers that start in a tenth of a second: forked off a process that has imported everything and started nothing.

``python -m tests.faults.nursery`` reads one JSON object a line from standard input, {"config", "board", "log",
"waits"}, and writes {"pid"} for each, and {"ended", "status"} for each child that has ended; before all that {"began"},
once it has imported everything. It ends, and its children with it, at the end of its input. What a child runs is the
worker's own ``main``; only the waits may be shorter.
"""

import asyncio
import gc
import json
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

import tests.faults.chain_engine  # noqa: F401  imported once, for all children
from tests.faults.cables import Cables
from tests.faults.points import Board, install
from tests.own_path import ROOT, with_own_path
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.local_process import LocalProcess
from worldmove.move.destination import Destination, DestinationConfig
from worldmove.move.source import Source, SourceConfig
from worldmove.worker import drivers, process, warm_up
from worldmove.worker.config import WorkerConfig

ENGINE = "python:tests.faults.chain_engine:build"
SOURCE = SourceConfig(
    frozen_s=0.5, resend_s=0.2, proof_retry_s=0.1, num_proofs=2, inquire_s=0.05, retired_inquire_s=0.3
)
DESTINATION = DestinationConfig(transfer_s=1.0, commit_retry_s=0.05)
SHORTENED: Mapping[str, object] = {
    "Source": partial(Source, config=SOURCE),
    "Destination": partial(Destination, config=DESTINATION),
}


def main() -> None:
    """Fork children until the end of the input."""
    gc.freeze()
    children: dict[int, None] = {}
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    asked = b""
    _say({"began": os.getpid()})
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(children)
        if 0 in ready:
            got = os.read(0, 65536)
            if not got:
                break
            *lines, asked = (asked + got).split(b"\n")
            for line in lines:
                pid = _fork(json.loads(line), (woken, waker))
                children[pid] = None
                _say({"pid": pid})
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _reap(children: dict[int, None]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        del children[pid]
        _say({"ended": pid, "status": os.waitstatus_to_exitcode(status)})


def _say(what: Mapping[str, int]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _fork(order: dict[str, str], not_its: tuple[int, ...]) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    told = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for here, there in ((nothing, 0), (nothing, 1), (told, 2)):
        os.dup2(here, there)
    for descriptor in (*not_its, nothing, told):
        os.close(descriptor)
    if "board" in order:
        install(Path(order["board"]))
        warm_up.SAMPLE_BYTES = 1 << 20
    if order.get("waits") == "short":
        _shorten()
    sys.argv = ["worker", order["config"]]
    process.main()
    os._exit(1)  # not reached: a worker's main ends its process


def _shorten() -> None:
    for name, shortened in SHORTENED.items():
        setattr(drivers, name, shortened)


class NurseryEndedError(Exception):
    """It begins no worker any more."""


class Nursery:
    """The test's side: children by process id."""

    def __init__(self, running: asyncio.subprocess.Process, folder: Path) -> None:
        self.folder = folder
        self._running = running
        self._pids: asyncio.Queue[int | None] = asyncio.Queue()
        """None once there will be none any more."""
        self._ends: dict[int, asyncio.Future[int]] = {}
        self._asking = asyncio.Lock()
        self.tells_of_ends = asyncio.Event()
        """Cleared, nobody hears of an end until it is set again."""
        self.tells_of_ends.set()
        self._boards: dict[str, Board] = {}

    def board(self, worker: str) -> Board:
        """Return the board that every incarnation of a worker looks at."""
        if worker not in self._boards:
            self._boards[worker] = Board(self.folder / f"{worker}.board")
        return self._boards[worker]

    async def fork_hurtable(self, config: WorkerConfig, *, waits: str) -> "Child":
        """Begin a worker that looks at its board. ``waits``: "short", or as they are "shipped"."""
        self.board(config.worker)
        return await self.fork(config, board=str(self.folder / f"{config.worker}.board"), waits=waits)

    async def began(self) -> None:
        """Return once it can begin workers. Raises NurseryEndedError."""
        await self._next_pid()

    async def fork(self, config: WorkerConfig, **more: str) -> "Child":
        """Begin a worker as it is. Raises NurseryEndedError."""
        order = {
            "config": msgspec.json.encode(config).decode(),
            "log": str(self.folder / f"{config.worker}.log"),
            **more,
        }
        async with self._asking:
            assert self._running.stdin is not None
            self._running.stdin.write(json.dumps(order).encode() + b"\n")
            pid = await self._next_pid()
        return Child(pid, self._end_of(pid))

    async def listen(self) -> None:
        """Hear of pids and ends until the nursery has ended."""
        assert self._running.stdout is not None
        async for line in self._running.stdout:
            said = json.loads(line)
            if "ended" in said:
                await self.tells_of_ends.wait()
                self._end_of(said["ended"]).set_result(said["status"])
            else:
                self._pids.put_nowait(said.get("pid", said.get("began")))
        self._pids.put_nowait(None)

    async def _next_pid(self) -> int:
        pid = await self._pids.get()
        if pid is None:
            self._pids.put_nowait(None)  # for whoever asks next
            raise NurseryEndedError(f"the nursery has ended, with status {await self._running.wait()}")
        return pid

    def _end_of(self, pid: int) -> asyncio.Future[int]:
        return self._ends.setdefault(pid, asyncio.get_running_loop().create_future())


class Child(LocalProcess):
    """A forked worker."""

    def __init__(self, pid: int, end: asyncio.Future[int]) -> None:
        self._pid = pid
        self._end = end

    @property
    def pid(self) -> int:
        return self._pid

    async def ended(self) -> int:
        return await asyncio.shield(self._end)

    def _signal(self, number: signal.Signals) -> None:
        if not self._end.done():
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


class NurseryHosts(LocalHosts):
    """The product's hosts, whose workers come from a nursery."""

    def __init__(self, config: LocalHostsConfig, nursery: Nursery) -> None:
        super().__init__(config)
        self._nursery = nursery

    async def _spawn(self, worker: str, incarnation: int, socket_path: Path) -> Child:
        config = msgspec.structs.replace(
            self._config.worker, worker=worker, incarnation=incarnation, socket_path=str(socket_path)
        )
        return await self._nursery.fork(config)


class HurtableHosts(LocalHosts):
    """The product's hosts, whose workers come from a nursery, look at boards, and are linked by cables."""

    def __init__(self, config: LocalHostsConfig, nursery: Nursery, cables: Cables, *, waits: str = "short") -> None:
        super().__init__(config)
        self._nursery = nursery
        self._cables = cables
        self._waits = waits

    async def _spawn(self, worker: str, incarnation: int, socket_path: Path) -> Child:
        path = await self._cables.between(worker, socket_path)
        config = msgspec.structs.replace(
            self._config.worker, worker=worker, incarnation=incarnation, socket_path=str(path)
        )
        return await self._nursery.fork_hurtable(config, waits=self._waits)


@asynccontextmanager
async def nursery_in(folder: Path) -> AsyncIterator[Nursery]:
    """Have a nursery while inside; its boards and logs are kept in a folder. Raises NurseryEndedError."""
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.faults.nursery",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=with_own_path() | {"OMP_NUM_THREADS": "1"},
        cwd=ROOT,
    )
    nursery = Nursery(running, folder)
    listening = asyncio.create_task(nursery.listen())
    try:
        await nursery.began()
        yield nursery
    finally:
        assert running.stdin is not None
        running.stdin.close()
        await running.wait()
        await listening


if __name__ == "__main__":
    main()
