"""Moves a played world to and fro in a server of its own, and measures a copy of as many bytes between the moves."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median, quantiles
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from worldmove.cli.bench_peers import measure_peers, medians
from worldmove.cli.bench_server import served
from worldmove.cli.client import Client, ServerError
from worldmove.errors import MessageError
from worldmove.serve.frames import unpack
from worldmove.serve.server_config import ServerConfig
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.kit_double import NAME as DOUBLE
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit

PAUSE_GOAL_FACTOR, PAUSE_GOAL_MS = 3.0, 10.0
KEY_EVERY_S = 0.4
WALK = ("up", "right", "down", "left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a bench found. Times in ms, one entry a move."""

    num_bytes: int
    outcomes: dict[str, int]
    pause_ms: list[float]
    gap_ms: list[float]
    copy_ms: list[float]
    took_ms: list[float]
    frames: int
    frames_damaged: int
    frames_missing: int
    checks: int
    checks_unequal: int
    blocks_late: int
    phase_ms: dict[str, list[float]] = field(default_factory=dict)
    """How long each phase of a committed move took, by its end and name."""
    starts_ms: dict[str, list[float]] = field(default_factory=dict)
    """When it began, from the freeze on."""
    peer_ms: dict[str, float | str] = field(default_factory=dict)
    """What other ways took with as many bytes in as many tensors: the median, or why there is none."""

    def fields(self) -> dict[str, Any]:
        """Return everything, for programs."""
        series = {"pause": self.pause_ms, "gap": self.gap_ms, "copy": self.copy_ms, "took": self.took_ms}
        figures = {f"{name}_ms": summary(values) for name, values in series.items()}
        return {
            "num_bytes": self.num_bytes,
            "outcomes": self.outcomes,
            **figures,
            "frames": self.frames,
            "frames_damaged": self.frames_damaged,
            "frames_missing": self.frames_missing,
            "checks": self.checks,
            "checks_unequal": self.checks_unequal,
            "blocks_late": self.blocks_late,
            "phases_ms": {name: summary(values) for name, values in self.phase_ms.items()},
            "phase_starts_ms": {name: summary(values) for name, values in self.starts_ms.items()},
            "peers_ms": self.peer_ms,
            "misses": self.misses(),
        }

    def rows(self) -> list[tuple[object, ...]]:
        """Return the table, for people."""
        named = {"pause (ms)": self.pause_ms, "gap (ms)": self.gap_ms, "copy of as much (ms)": self.copy_ms}
        peers = [(f"{name} (ms)", median_ms, "", "") for name, median_ms in self.peer_ms.items()]
        return [*((name, *(summary(values) or {}).values()) for name, values in named.items() if values), *peers]

    def misses(self) -> list[str]:
        """Return the goals that were not met."""
        missed = []
        if set(self.outcomes) != {"committed"}:
            missed.append(f"outcomes {self.outcomes}")
        if self.frames_damaged or self.frames_missing or self.checks_unequal:
            missed.append(
                f"{self.frames_damaged} frames damaged, {self.frames_missing} missing, {self.checks_unequal} unequal"
            )
        if self.pause_ms and median(self.pause_ms) > self.goal_ms():
            missed.append(f"median pause {median(self.pause_ms):.1f} ms, goal {self.goal_ms():.1f} ms")
        if self.gap_ms and max(self.gap_ms) > 0:
            num_late = sum(gap > 0 for gap in self.gap_ms)
            missed.append(f"{num_late} moves with a late block, {max(self.gap_ms):.1f} ms at most")
        return missed

    def goal_ms(self) -> float:
        """Return the longest pause that is good: three copies and 10 ms."""
        return PAUSE_GOAL_FACTOR * median(self.copy_ms) + PAUSE_GOAL_MS

    def sentence(self) -> str:
        """Return what came out, in one line."""
        missed = self.misses()
        moved = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        verdict = "every goal met" if not missed else "missed: " + "; ".join(missed)
        return f"{moved} of {self.num_bytes / 1e6:.1f} MB under play, {self.frames:,} frames checked: {verdict}."


def summary(values: list[float]) -> dict[str, float] | None:
    """Return median, 90th percentile and largest of a series."""
    if not values:
        return None
    high = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    return {"median": round(median(values), 3), "p90": round(high, 3), "max": round(max(values), 3)}


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
    resting: bool = False
    more: asyncio.Event = field(default_factory=asyncio.Event)

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

    def _frame(self, message: bytes) -> None:
        header, pixels = unpack(message)
        if hashlib.sha256(pixels).digest() != header.sha256:
            self.damaged += 1
        if self.next_frame is not None:
            self.missing += header.frame != self.next_frame
        self.next_frame = header.frame + 1
        self.frames += 1
        self.more.set()


def measure(config: ServerConfig, num_moves: int, stage: Callable[[str], None]) -> Measured:
    """Run the bench."""
    return asyncio.run(_measure(config, num_moves, stage))


async def _measure(config: ServerConfig, num_moves: int, stage: Callable[[str], None]) -> Measured:
    async with served(config, stage) as url:
        client, seen = Client(url), Seen()
        opened = await asyncio.to_thread(client.post, "sessions", body={"seed": 1})
        address = f"{url.replace('http', 'ws', 1)}/api/sessions/{opened['session']}/play"
        async with connect(address, compression=None, proxy=None, max_size=None) as socket:
            tasks = [asyncio.create_task(_watch(socket, seen)), asyncio.create_task(_walk(socket, seen))]
            try:
                reports, copies = await _moves(client, opened, seen, num_moves, stage)
                leaves = await asyncio.to_thread(client.get, "sessions", opened["session"], "leaves")
                kit = await asyncio.to_thread(_kit_of_workers, client)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    sizes = [leaf["num_bytes"] for leaf in leaves["leaves"]]
    peers = medians(measure_peers(sizes, "cpu" if kit is None or kit.name == DOUBLE else "cuda", stage))
    return replace(_measured(opened, reports, copies, seen), peer_ms=peers)


async def _moves(
    client: Client, opened: dict[str, Any], seen: Seen, num_moves: int, stage: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[float]]:
    reports, copies, kit = [], [], await asyncio.to_thread(_kit_of_workers, client)
    for number in range(1, num_moves + 1):
        stage(f"move {number} of {num_moves}")
        await _frames_later(seen, 8)
        copies.append(await asyncio.to_thread(copy_ms, opened["num_bytes"], kit))
        with suppress(ServerError):  # a refused move is in the list too
            await asyncio.to_thread(client.post, "sessions", opened["session"], "move", body={})
        reports.append((await asyncio.to_thread(client.get, "moves"))["moves"][-1])
    await _frames_later(seen, 16)
    return reports, copies


def _kit_of_workers(client: Client) -> MemoryKit | None:
    """Return a kit of the device on which the workers' sessions lie, if they lie on one."""
    workers = client.get("environment")["workers"].values()
    names = [fields.get("device.name") for fields in workers]
    if not names or names[0] is None:
        return None
    return kit_of(DOUBLE if names[0] == DOUBLE else "cuda")


async def _frames_later(seen: Seen, count: int) -> None:
    """Return when so many more frames have been seen."""
    goal = seen.frames + count
    while seen.frames < goal:
        seen.more.clear()
        await seen.more.wait()


async def _watch(socket: ClientConnection, seen: Seen) -> None:
    async for message in socket:
        seen.take(message)


async def _walk(socket: ClientConnection, seen: Seen) -> None:
    """Hold one direction after another, so that the world never rests."""
    await _frames_later(seen, 1)
    step = 0
    while True:
        key = WALK[step % len(WALK)]
        for down in (True, False):
            seen.number += 1
            await socket.send(json.dumps({"type": "keys", "changes": [[seen.number, key, down]]}))
            await asyncio.sleep(KEY_EVERY_S)
        step += 1


def copy_ms(num_bytes: int, kit: MemoryKit | None = None) -> float:
    """Return how long one flat copy of so many bytes takes where sessions lie, pages there. It verifies nothing."""
    if num_bytes <= 0:
        raise MessageError("the session has no bytes to copy")
    if kit is not None:
        return _device_copy_ms(num_bytes, kit)
    source, copied = np.ones(num_bytes, dtype=np.uint8), np.zeros(num_bytes, dtype=np.uint8)
    begin = time.perf_counter()
    np.copyto(copied, source)
    return (time.perf_counter() - begin) * 1000


def _device_copy_ms(num_bytes: int, kit: MemoryKit) -> float:
    arenas = [DeviceArena(num_bytes, "worldmove-bench", kit) for _ in range(2)]
    try:
        took_ms = 0.0
        for _ in range(2):
            window, begin = arenas[1].lend(), time.perf_counter()
            window.start_copy(arenas[0].address, [Extent(offset=0, length=num_bytes)]).wait()
            took_ms = (time.perf_counter() - begin) * 1000
            window.close()
        return took_ms
    finally:
        for arena in arenas:
            arena.close()


def _measured(opened: dict[str, Any], reports: list[dict[str, Any]], copies: list[float], seen: Seen) -> Measured:
    outcomes: dict[str, int] = {}
    for report in reports:
        outcomes[report["outcome"]] = outcomes.get(report["outcome"], 0) + 1
    committed = [report for report in reports if report["outcome"] == "committed"]
    return Measured(
        phase_ms=_of_phases(committed, lambda phase, _: phase["end_ms"] - phase["start_ms"]),
        starts_ms=_of_phases(committed, lambda phase, frozen_ms: phase["start_ms"] - frozen_ms),
        num_bytes=opened["num_bytes"],
        outcomes=outcomes,
        pause_ms=[report["pause_ms"] for report in reports if report["pause_ms"] is not None],
        gap_ms=[report["gap_ms"] for report in reports if report["gap_ms"] is not None],
        took_ms=[report["took_ms"] for report in reports],
        copy_ms=copies,
        frames=seen.frames,
        frames_damaged=seen.damaged,
        frames_missing=seen.missing,
        checks=seen.checks,
        checks_unequal=seen.unequal,
        blocks_late=seen.late,
    )


def _of_phases(
    reports: list[dict[str, Any]], number: Callable[[dict[str, Any], float], float]
) -> dict[str, list[float]]:
    """Return a number of each phase, move by move. The second argument is when the freeze began, in ms."""
    found: dict[str, list[float]] = {}
    for report in reports:
        frozen_ms = next((p["start_ms"] for p in report["phases"] if p["name"] == "freeze"), 0.0)
        for phase in report["phases"]:
            found.setdefault(f"{phase['side']} {phase['name']}", []).append(number(phase, frozen_ms))
    return found
