"""A server in a process of its own that can be killed and started again, and a client that stays."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage

from tests.serve.logging_engine import FOLDER
from worldmove.serve.frames import FrameHeader, unpack

ROOT = Path(__file__).parents[2]
MAIN = "from worldmove.cli.main import main; main()"
ENGINE = "python:tests.serve.logging_engine:engine"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Server:
    """``worldmove serve`` on one state folder and one port."""

    state: Path
    lists: Path
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, *options: str) -> None:
        """Return once it answers."""
        paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        arguments = ("serve", "--engine", ENGINE, "--port", str(self.port), "--state", str(self.state), *options)
        with (self.state.parent / "stderr").open("ab") as errors:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                MAIN,
                *arguments,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": paths, FOLDER: str(self.lists)},
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        assert line.decode().strip() == self.url, (self.state.parent / "stderr").read_text()

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def end(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()

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
    def received(self) -> int | None:
        """The newest block of which both frames are here."""
        num_blocks = (self.frames[-1][0].frame + 1) // 2 if self.frames else 0
        return num_blocks - 1 if num_blocks else None

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
