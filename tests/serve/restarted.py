"""A server in a process of its own that can be killed and started again, and a client that stays."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx
import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage

from tests.forks import FORKS
from tests.own_path import own_path
from tests.serve.logging_engine import FOLDER
from worldmove.serve.frames import FrameHeader, unpack
from worldmove.serve.receipts import claim_of
from worldmove.serve.server import run
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.worker.config import WorkerConfig

ROOT = Path(__file__).parents[2]
ENGINE = "python:tests.serve.logging_engine:engine"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def serve(config: ServerConfig, folder: Path, ready: Connection) -> None:
    """Run a server in this process, as the command line does."""
    os.environ.update({FOLDER: str(folder / "lists"), "PYTHONPATH": own_path()})
    descriptor = os.open(folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 2)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(run(config, Hooks(stage=lambda text: None, ready=ready.send)))


@dataclass
class Server:
    """A server on one state folder and one port, in a process of its own."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: ForkServerProcess | None = None

    def __post_init__(self) -> None:
        (self.folder / "lists").mkdir()

    @property
    def lists(self) -> Path:
        return self.folder / "lists"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def errors(self) -> str:
        return (self.folder / "errors").read_text(encoding="utf-8")

    async def start(self, num_workers: int = 2) -> None:
        """Return once it answers."""
        worker = WorkerConfig(engine=ENGINE, log_level="warning")
        config = ServerConfig(port=self.port, state=self.state, worker=worker, num_workers=num_workers)
        there, here = FORKS.Pipe()
        self.process = FORKS.Process(target=serve, args=(config, self.folder, there))
        await asyncio.to_thread(self.process.start)
        there.close()
        assert await asyncio.to_thread(here.poll, 60), self.errors
        assert here.recv() == self.url
        here.close()

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await asyncio.to_thread(self.process.join)

    async def end(self) -> int | None:
        assert self.process is not None
        self.process.terminate()
        await asyncio.to_thread(self.process.join)
        return self.process.exitcode

    async def ask(self, method: str, path: str, **body: Any) -> Any:
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=30) as http:
            answer = await http.request(method, f"/api/{path}", json=body or None)
        return answer.json()

    async def workers(self) -> dict[str, dict[str, Any]]:
        return {row["worker"]: row for row in (await self.ask("GET", "workers"))["workers"]}


@dataclass
class Client:
    """A page: it connects again by itself, says what it has, and keeps what it was shown."""

    server: Server
    session: str
    frames: list[tuple[FrameHeader, bytes]] = field(default_factory=list)
    said: list[dict[str, Any]] = field(default_factory=list)
    number: int = 0
    socket: ClientConnection | None = None
    more: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def received(self) -> str | None:
        """The newest block of which both frames are here, with its receipt."""
        whole = [header for header, _ in self.frames if header.index == 1]
        return claim_of(whole[-1].block, whole[-1].receipt) if whole else None

    async def stay(self) -> None:
        while True:
            with suppress(OSError, ConnectionClosed, InvalidMessage, TimeoutError):
                await self._connect()
            self.socket = None
            self.more.set()
            await asyncio.sleep(0.1)

    async def _connect(self) -> None:
        query = "" if self.received is None else f"?received={self.received}"
        address = f"ws://127.0.0.1:{self.server.port}/api/sessions/{self.session}/play{query}"
        async with connect(address, compression=None, proxy=None, open_timeout=30) as self.socket:
            while True:
                self._take(await self.socket.recv())
                self.more.set()

    def _take(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.said.append(json.loads(message))
            if self.said[-1]["type"] == "hello":
                self.number = self.said[-1]["next_number"] - 1
            return
        header, pixels = unpack(message)
        if not self.frames or header.frame > self.frames[-1][0].frame:
            self.frames.append((header, pixels))
        else:  # the newest block comes again after a hello: it must be the same
            known = next(frame for frame in self.frames if frame[0].frame == header.frame)
            assert known[1] == pixels, f"frame {header.frame} came again, and differs"

    async def press(self, key: str) -> None:
        self.number += 2
        changes = [[self.number - 1, key, True], [self.number, key, False]]
        with suppress(ConnectionClosed, AttributeError):
            await self.socket.send(json.dumps({"type": "keys", "changes": changes}))  # type: ignore[union-attr]

    async def until(self, holds: Callable[[], object], within_s: float = 40) -> None:
        async with asyncio.timeout(within_s):
            while not holds():
                self.more.clear()
                await self.more.wait()

    async def blocks(self, count: int, *, pressing: str = "up") -> None:
        """Return when so many more blocks have come, with a key pressed at each."""
        for _ in range(count):
            goal = len(self.frames) + 2
            await self.press(pressing)
            await self.until(lambda goal=goal: len(self.frames) >= goal)  # type: ignore[misc]

    def heard(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.said if message["type"] == kind]


@asynccontextmanager
async def staying(server: Server, session: str) -> AsyncIterator[Client]:
    client = Client(server, session)
    task = asyncio.create_task(client.stay())
    try:
        await client.until(lambda: client.heard("hello"))
        yield client
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
