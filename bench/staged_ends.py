"""The two ends of pulls through pinned host memory, each in a process of its own: no session, and nothing verified but
that every pull brings what lies there.
"""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.pinned import digest_of, fill
from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import Channel
from worldmove.transport.descriptors import TOKEN_BYTES
from worldmove.transport.ring import RingShape
from worldmove.transport.staged import Staged, StagedChannel
from worldmove.transport.staged_serving import StagedConfig
from worldmove.units import KIB
from worldmove.worker.threads import OneThread

ANSWER_S = 120.0
SCATTERED_RUNS = 450
GAP_BYTES = 8 * KIB
"""Wide enough that no run is joined with the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulls:
    """What came of some pulls of one size: how long connecting took, first and again, and each pull. In ms."""

    num_bytes: int
    connect_ms: list[float]
    pull_ms: list[float]
    scattered_ms: list[float]
    """Of the same bytes in hundreds of runs."""


def measure_pulls(device: str, kit: MemoryKit, num_bytes: int, shape: RingShape, repeats: int) -> Pulls:
    """Pull a slot of another process's device to this one's again and again.

    Raises TransportError if other bytes come.
    """
    with TemporaryDirectory(prefix="worldmove-bench-") as folder, _source(device, num_bytes, shape, folder) as link:
        arena = DeviceArena(num_bytes, "worldmove-bench", kit)
        try:
            return asyncio.run(_pulls(arena, num_bytes, _config(folder, "here", shape), link, repeats))
        finally:
            arena.close()


async def _pulls(arena: DeviceArena, num_bytes: int, config: StagedConfig, link: Connection, repeats: int) -> Pulls:
    ticket, expected = link.recv()
    path = _path(config, arena.kit)
    await path.start()
    connect_ms: list[float] = []
    series: list[list[float]] = []
    try:
        for extents in (whole(num_bytes), scattered(num_bytes)):
            begin = time.perf_counter()
            channel = await path.connect(ticket)
            connect_ms.append((time.perf_counter() - begin) * 1000)
            try:
                arena.poison()
                series.append([await _pull(channel, extents, arena) for _ in range(repeats + 1)][1:])
            finally:
                await channel.close()
            if len(series) == 1 and digest_of(arena, num_bytes) != expected:
                raise TransportError("other bytes came than lay there")
    finally:
        await path.close()
    return Pulls(num_bytes=num_bytes, connect_ms=connect_ms, pull_ms=series[0], scattered_ms=series[1])


async def _pull(channel: Channel, extents: Sequence[Extent], arena: DeviceArena) -> float:
    assert isinstance(channel, StagedChannel)
    window, begin = arena.lend(), time.perf_counter()
    await channel.pull_to_device(extents, window)
    took_ms = (time.perf_counter() - begin) * 1000
    window.close()
    return took_ms


def whole(num_bytes: int) -> list[Extent]:
    """Return a slot as one run."""
    return [Extent(offset=0, length=num_bytes)]


def scattered(num_bytes: int) -> list[Extent]:
    """Return it in as many runs as a session has leaves, with gaps."""
    step = num_bytes // SCATTERED_RUNS // 256 * 256
    return [Extent(offset=at, length=max(step - GAP_BYTES, 256)) for at in range(0, step * SCATTERED_RUNS, step)]


@contextmanager
def _source(device: str, num_bytes: int, shape: RingShape, folder: str) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_hold, args=(device, num_bytes, shape, folder, there), name="source")
    process.start()
    there.close()
    try:
        if not here.poll(ANSWER_S):
            raise TransportError(f"the bench's source gave no ticket within {ANSWER_S:.0f} s")
        yield here
    finally:
        here.close()
        process.join(ANSWER_S)
        if process.is_alive():
            process.kill()


def _hold(device: str, num_bytes: int, shape: RingShape, folder: str, link: Connection) -> None:
    """Lend a slot of random bytes until the other end of the line is closed."""
    asyncio.run(_held(DeviceArena(num_bytes, "worldmove-bench", device_kit(device)), num_bytes, shape, folder, link))


async def _held(arena: DeviceArena, num_bytes: int, shape: RingShape, folder: str, link: Connection) -> None:
    fill(arena, seed=os.getpid())
    path = _path(_config(folder, "there", shape), arena.kit)
    await path.start()
    try:
        link.send((await path.export_device(arena), digest_of(arena, num_bytes)))
        await asyncio.to_thread(link.poll, None)
    finally:
        await path.close()


def device_kit(device: str) -> MemoryKit:
    """Return a device's kit. Raises TransportError for what is none."""
    kit = kit_of(device)
    if kit is None:
        raise TransportError(f"{device} is no device")
    return kit


def _config(folder: str, name: str, shape: RingShape) -> StagedConfig:
    return StagedConfig(path=Path(folder) / name, shape=shape)


def _path(config: StagedConfig, kit: MemoryKit) -> Staged:
    return Staged(config=config, kit=kit, new_thread=OneThread, tokens=lambda: os.urandom(TOKEN_BYTES))
