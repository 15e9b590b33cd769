"""A player over the real play wire that never leaves, presses keys, and writes down every frame that comes."""

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from worldmove.serve.frames import unpack

KEYS = ("up", "down")


class Watcher:
    """What one connection got, in the order in which it came."""

    def __init__(self, seed: int) -> None:
        self.numbers: list[int] = []
        self.frames: list[str] = []
        """SHA-256 of each frame's pixels, taken here."""
        self.epochs: list[int] = []
        self.damaged = 0
        self.lost: list[str] = []
        self.errors: list[str] = []
        self.results: list[dict[str, Any]] = []
        self.checks: list[bool] = []
        self.failovers: list[dict[str, Any]] = []
        self.closed_with: str = ""
        self._rng = random.Random(seed)
        self._number = 0
        self._socket: ClientConnection | None = None

    async def watch(self, address: str) -> None:
        """Play until the connection ends."""
        async with connect(address, compression=None, proxy=None, max_size=None, ping_interval=None) as socket:
            self._socket = socket
            await socket.send(json.dumps({"type": "keep", "keep": True}))
            with suppress(ConnectionClosed):
                async for message in socket:
                    if isinstance(message, str):
                        self._hear(json.loads(message))
                    else:
                        self._see(message)
                        await self._play(socket)
            self.closed_with = socket.close_reason or ""

    async def press(self, key: str) -> None:
        """Press a key and let it go."""
        assert self._socket is not None
        changes = []
        for down in (True, False):
            self._number += 1
            changes.append([self._number, key, down])
        await self._socket.send(json.dumps({"type": "keys", "changes": changes}))

    async def _play(self, socket: ClientConnection) -> None:
        if self._rng.random() < 0.4:
            with suppress(ConnectionClosed):
                await self.press(self._rng.choice(KEYS))

    def _see(self, message: bytes) -> None:
        header, pixels = unpack(message)
        digest = hashlib.sha256(pixels)
        self.damaged += digest.digest() != header.sha256
        self.numbers.append(header.frame)
        self.epochs.append(header.epoch)
        self.frames.append(digest.hexdigest())

    def _hear(self, said: dict[str, Any]) -> None:
        match said["type"]:
            case "hello":
                self._number = said["next_number"] - 1
            case "lost":
                self.lost.append(said["sentence"])
            case "error":
                self.errors.append(said["message"])
            case "move" if said.get("event") == "result":
                self.results.append(said)
            case "failover":
                self.failovers.append(said)
            case "check":
                self.checks.append(said["equal"])


@asynccontextmanager
async def watching(url: str, session: str, seed: int = 0) -> AsyncIterator[Watcher]:
    """Watch a session while inside."""
    watcher = Watcher(seed)
    address = f"{url.replace('http', 'ws', 1)}/api/sessions/{session}/play"
    task = asyncio.create_task(watcher.watch(address))
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
