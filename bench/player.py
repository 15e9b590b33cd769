"""One player over the real play wire: walks by the script, hashes every frame again, keeps what it saw."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.walk import Walk
from worldmove.cli.json_text import json_text
from worldmove.serve.frames import FrameHeader, unpack


@dataclass(slots=True, kw_only=True)
class Seen:
    """What came: frames by their number, and everything that should not have come."""

    frames: dict[int, str] = field(default_factory=dict)
    """By frame: SHA-256 of its pixels, as recomputed here."""
    newest: int = -1
    """The newest frame."""
    epoch: int = 0
    """Of the owner that made it."""
    damaged: int = 0
    """Frames whose pixels are not what their header says."""
    missing: int = 0
    """Frames that were skipped."""
    changed: int = 0
    """Frames that came again (after a reload) and were others."""
    checks: int = 0
    checks_unequal: int = 0
    errors: list[str] = field(default_factory=list)


class Player:
    """Plays one session, as often as it is told to join."""

    def __init__(self, url: str, session: str, walk: Walk, frames_per_block: int) -> None:
        self.seen = Seen()
        self.session = session
        self._address = f"{url.replace('http', 'ws', 1)}/api/sessions/{session}/play"
        self._walk = walk
        self._frames_per_block = frames_per_block
        self._number = 0
        self._came = asyncio.Event()

    @property
    def num_blocks(self) -> int:
        """Return the block after the newest that was seen whole."""
        return (self.seen.newest + 1) // self._frames_per_block

    async def blocks(self, number: int) -> None:
        """Return once the blocks before this one were seen."""
        while self.num_blocks < number:
            self._came.clear()
            await self._came.wait()

    async def play(self, stop: Callable[[int], bool]) -> None:
        """Join, and play until ``stop`` of ``num_blocks``; then leave, and the world rests."""
        async with connect(self._address, compression=None, proxy=None, max_size=None) as socket:
            async for message in socket:
                before = self.num_blocks
                if isinstance(message, str):
                    await self._hear(socket, json.loads(message))
                else:
                    self._see(*unpack(message))
                if self.num_blocks == before:
                    continue
                self._came.set()
                if stop(self.num_blocks):
                    return
                await self._act(socket, self.num_blocks)

    def _see(self, header: FrameHeader, pixels: bytes) -> None:
        digest = hashlib.sha256(pixels).digest()
        self.seen.damaged += digest != header.sha256
        if header.frame in self.seen.frames:
            self.seen.changed += self.seen.frames[header.frame] != digest.hex()
            return
        self.seen.missing += header.frame != self.seen.newest + 1
        self.seen.newest, self.seen.epoch = header.frame, header.epoch
        self.seen.frames[header.frame] = digest.hex()

    async def _hear(self, socket: ClientConnection, said: dict[str, Any]) -> None:
        match said["type"]:
            case "hello":
                self._number = said["next_number"] - 1
                await self._act(socket, said["next_block"])
            case "check":
                self.seen.checks += 1
                self.seen.checks_unequal += not said["equal"]
            case "error" | "lost":
                self.seen.errors.append(json_text(said))

    async def _act(self, socket: ClientConnection, block: int) -> None:
        """Do what the script has for the next list that is closed."""
        changes = []
        for key, down in self._walk.changes(block):
            self._number += 1
            changes.append([self._number, key, down])
        if changes:
            await socket.send(json_text({"type": "keys", "changes": changes}))
