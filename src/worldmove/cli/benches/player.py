"""A bench's player over the real play wire: walks, hashes every frame again, counts what should not have come."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from worldmove.errors import TransportError
from worldmove.serve.frames import unpack

KEY_EVERY_S = 0.4
WALK = ("up", "right", "down", "left")


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the player saw: every frame is hashed again and counted."""

    next_frame: int | None = None
    frames: int = 0
    damaged: int = 0
    missing: int = 0
    checks: int = 0
    unequal: int = 0
    late: int = 0
    number: int = 0
    digests: dict[int, str] = field(default_factory=dict)
    """SHA-256 of each frame's pixels, as taken here."""
    more: asyncio.Event = field(default_factory=asyncio.Event)
    ended: str | None = None
    """Why there will be no more; None while there may be."""

    def take(self, message: bytes | str) -> None:
        """Look at one message."""
        if isinstance(message, bytes):
            self._frame(message)
            return
        said = json.loads(message)
        match said["type"]:
            case "hello":
                self.number = said["next_number"] - 1
            case "check":
                self.checks, self.unequal = self.checks + 1, self.unequal + (not said["equal"])
            case "counts":
                self.late = said["blocks_late"]

    async def frames_later(self, count: int) -> None:
        """Return when so many more frames have been seen. Raises TransportError where there will be none."""
        goal = self.frames + count
        while self.frames < goal:
            if self.ended is not None:
                raise TransportError(f"the world is shown no more: {self.ended}")
            self.more.clear()
            await self.more.wait()

    def _frame(self, message: bytes) -> None:
        header, pixels = unpack(message)
        digest = hashlib.sha256(pixels)
        if digest.digest() != header.sha256:
            self.damaged += 1
        if self.next_frame is not None:
            self.missing += header.frame != self.next_frame
        self.digests[header.frame] = digest.hexdigest()
        self.next_frame = header.frame + 1
        self.frames += 1
        self.more.set()


@asynccontextmanager
async def playing(url: str, session: str, *, turn: int = 0) -> AsyncIterator[Seen]:
    """Play a session of the server at ``url`` while inside. ``turn``: with which direction it begins."""
    address = f"{url.replace('http', 'ws', 1)}/api/sessions/{session}/play"
    async with connect(address, compression=None, proxy=None, max_size=None) as socket:
        seen = Seen()
        tasks = [asyncio.create_task(_watch(socket, seen)), asyncio.create_task(_walk(socket, seen, turn))]
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(socket: ClientConnection, seen: Seen) -> None:
    try:
        while True:
            seen.take(await socket.recv())
    except ConnectionClosed as error:
        seen.ended = str(error)
        seen.more.set()


async def _walk(socket: ClientConnection, seen: Seen, turn: int) -> None:
    """Hold one direction after another, so that the world never rests."""
    await seen.frames_later(1)
    step = turn
    while True:
        key = WALK[step % len(WALK)]
        for down in (True, False):
            seen.number += 1
            await socket.send(json.dumps({"type": "keys", "changes": [[seen.number, key, down]]}, allow_nan=False))
            await asyncio.sleep(KEY_EVERY_S)
        step += 1
