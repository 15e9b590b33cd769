"""The whole server: real workers (from a nursery), real sockets, the small engine."""

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.nursed import Nursed
from worldmove.serve.frames import FrameHeader, Kind, unpack
from worldmove.serve.house import House
from worldmove.serve.player import CloseCode
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine

ENGINE = "reference:tiny"
CONFIG = ServerConfig(port=0, worker=WorkerConfig(engine=ENGINE, log_level="warning"), rest_after_s=2.0)


@dataclass
class Client:
    """A page: it counts what it sees, and presses keys."""

    socket: ClientConnection
    said: list[dict[str, Any]] = field(default_factory=list)
    frames: list[tuple[FrameHeader, bytes]] = field(default_factory=list)
    recovered: list[tuple[FrameHeader, bytes]] = field(default_factory=list)
    number: int = 0
    more: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Take what comes until the connection is closed, however it is."""
        with suppress(ConnectionClosed):
            while True:
                self._take(await self.socket.recv())
                self.more.set()
        self.more.set()

    def _take(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            header, pixels = unpack(message)
            (self.frames if header.kind is Kind.LIVE else self.recovered).append((header, pixels))
            return
        self.said.append(json.loads(message))
        if self.said[-1]["type"] == "hello":
            self.number = self.said[-1]["next_number"] - 1

    async def press(self, *changes: tuple[str, bool]) -> None:
        numbered = [[self.number + index, key, down] for index, (key, down) in enumerate(changes, start=1)]
        self.number += len(changes)
        await self.socket.send(json.dumps({"type": "keys", "changes": numbered}))

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                self.more.clear()
                await self.more.wait()

    async def blocks(self, count: int) -> None:
        """Return when so many more blocks have come."""
        goal = len(self.frames) + 2 * count
        await self.until(lambda: len(self.frames) >= goal)

    def heard(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.said if message["type"] == kind]


@asynccontextmanager
async def playing(house: House, session: str) -> AsyncIterator[Client]:
    address = f"{house.url.replace('http', 'ws', 1)}/api/sessions/{session}/play"
    async with connect(address, compression=None, proxy=None) as socket:
        client = Client(socket)
        reading = asyncio.create_task(client.read())
        try:
            await client.until(lambda: client.heard("hello"))
            yield client
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def with_server(nursed: Nursed, work: Callable[[House, httpx.AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with (
            inhabited(CONFIG, lambda _: None) as house,
            httpx.AsyncClient(base_url=house.url, trust_env=False, timeout=60) as http,
        ):
            await work(house, http)

    nursed.serve(run())


def replayed(house: House, session: str, seed: int) -> list[bytes]:
    """Every frame of a session, computed here from its input log alone."""
    engine = build_engine(ENGINE, 1)
    world, sequencer = engine.open(seed), house.gateway.live(session).sequencer
    blocks = [engine.step(world, sequencer.closed(block)) for block in range(sequencer.reaches)]
    return [frame.tobytes() for block in blocks for frame in block.frames]


@pytest.mark.slow
def test_a_world_that_is_moved_reloaded_taken_over_and_rested_equals_a_replay_of_its_log(nursed: Nursed) -> None:
    seen: list[tuple[FrameHeader, bytes]] = []
    pressed = 0

    async def work(house: House, http: httpx.AsyncClient) -> None:
        nonlocal pressed
        session = (await http.post("/api/sessions", json={"seed": 11})).json()["session"]
        async with playing(house, session) as client:
            await client.press(("up", True))
            for to in ("worker-2", "worker-1", "worker-2"):
                await client.blocks(4)
                await client.press(("right", True), ("right", False))
                moved = await http.post(f"/api/sessions/{session}/move", json={"to": to})
                assert (moved.status_code, moved.json()["outcome"]) == (200, "committed")
                assert moved.json()["source_digest"] == moved.json()["destination_digest"] != ""
            await client.until(lambda: len(client.heard("check")) >= 6)
            assert all(check["equal"] for check in client.heard("check"))
            results = [said for said in client.heard("move") if said["event"] == "result"]
            assert all(result["proof"].startswith("checked 1") for result in results)
            phases = [phase["name"] for phase in results[0]["phases"]]
            assert phases == ["Copying", "Holding", "Checking", "Handing over"]
            async with playing(house, session) as second:
                await client.until(lambda: client.heard("taken_over"))
                await second.press(("left", True), ("left", False))
                await second.blocks(2)
                await second.until(lambda: [said for said in second.heard("rest") if said["resting"]])
            seen.extend(client.frames)
            pressed = second.number
        async with playing(house, session) as back:
            await back.until(lambda: len(back.frames) == 2)
            assert [header.frame for header, _ in back.frames] == [header.frame for header, _ in seen[-2:]]
            await back.press(("flag", True), ("flag", False))
            await back.until(lambda: len(back.frames) >= 6)
            seen.extend(back.frames[2:])
            pressed = back.number
        frames = replayed(house, session, 11)
        assert [header.frame for header, _ in seen] == list(range(len(seen)))
        assert [pixels for _, pixels in seen] == frames[: len(seen)]
        assert all(hashlib.sha256(pixels).digest() == header.sha256 for header, pixels in seen)
        log = house.gateway.live(session).sequencer
        changes = [change for block in range(log.reaches) for change in log.closed(block)]
        released = [change for change in changes if (change.number, change.down, change.key) == (7, False, "up")]
        assert len(released) == 1  # when the second player took over
        numbers = [change.number for change in changes if change not in released]
        assert numbers == list(range(1, pressed + 1))

    with_server(nursed, work)


@pytest.mark.slow
def test_a_damaged_move_changes_nothing_a_recovered_copy_comes_and_goes_and_a_killed_owner_is_said(
    nursed: Nursed,
) -> None:
    async def work(house: House, http: httpx.AsyncClient) -> None:
        session = (await http.post("/api/sessions", json={"seed": 3, "worker": "worker-1"})).json()["session"]
        async with playing(house, session) as client:
            await client.press(("up", True))
            await client.blocks(3)
            broken = (await http.post(f"/api/sessions/{session}/move", json={"damage": True})).json()
            assert "outcome" in broken, broken
            assert (broken["outcome"], broken["tries"], broken["epoch"]) == ("aborted", 3, 1)
            assert broken["sentence"].startswith("Not moved, nothing changed. One part arrived damaged (3 tries).")
            await client.blocks(3)
            name = (await http.post(f"/api/sessions/{session}/recover")).json()["name"]
            await client.until(lambda: [said for said in client.heard("recover") if said["state"] == "closed"])
            assert {said["name"] for said in client.heard("recover")} == {name}
            assert len(client.recovered) >= 4
            assert [header.frame for header, _ in client.frames] == list(range(len(client.frames)))
            owner = next(row for row in client.heard("workers")[-1]["workers"] if row["owner"])
            workers = (await http.get("/api/workers")).json()["workers"]
            assert owner["pid"] == next(row["pid"] for row in workers if row["worker"] == "worker-1")
            os.kill(owner["pid"], signal.SIGKILL)
            await client.until(lambda: client.heard("lost"))
            await client.until(lambda: client.socket.close_code is not None)
            assert client.socket.close_code == CloseCode.SESSION_ENDED

    with_server(nursed, work)
