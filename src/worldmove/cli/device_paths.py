"""What every path between two devices of this machine really carries: random patterns, both ways, process to process.

Whether a path is whole is seen from the bytes that arrived, never from a name or from what a driver says that it can.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from worldmove.cli.device_source import TILE_BYTES, tile
from worldmove.errors import ArenaFull, TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit

SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFound:
    """One direction between two devices. ``rates``: bytes per second by size; ``why`` it is not whole, or empty."""

    source: str
    destination: str
    rates: dict[int, float]
    why: str = ""


def devices() -> tuple[str, ...]:
    """Name this machine's GPUs."""
    return tuple(f"cuda:{index}" for index in range(torch.cuda.device_count()))


def probe_all(names: Sequence[str], sizes: Sequence[int] = SIZES) -> list[PathFound]:
    """Try every pair in both directions, a device with itself too."""
    return [probe(source, destination, sizes) for source in names for destination in names]


def probe(source: str, destination: str, sizes: Sequence[int]) -> PathFound:
    """Pull a pattern from another process's memory in each size, and look at every byte that came."""
    rates: dict[int, float] = {}
    kit = kit_of(destination)
    try:
        with _held(source, max(sizes)) as handle:
            if kit is None:
                raise TransportError(f"{destination} is no device")
            for size in sizes:
                rates[size] = _pulled(kit, handle, max(sizes), size)
    except (TransportError, ArenaFull) as error:
        return PathFound(source=source, destination=destination, rates=rates, why=str(error))
    return PathFound(source=source, destination=destination, rates=rates)


@contextmanager
def _held(device: str, num_bytes: int) -> Iterator[bytes]:
    """Let another process hold the pattern. Raises TransportError if it could not."""
    command = [sys.executable, "-m", "worldmove.cli.device_source", device, str(num_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().strip()
            if not said:
                raise TransportError(f"no process could hold {num_bytes} bytes on {device}")
            yield bytes.fromhex(said)
        finally:
            process.kill()


def _pulled(kit: MemoryKit, handle: bytes, whole: int, size: int) -> float:
    """Pull twice; compare what came the second time, and return its rate. Raises TransportError where it differs."""
    mapped, arena = kit.open(handle, whole), DeviceArena(size, "worldmove-doctor", kit)
    try:
        took_s = 0.0
        for _ in range(2):
            arena.poison()
            window, begin = arena.lend(), time.perf_counter()
            window.start_copy(mapped.address, [Extent(offset=0, length=size)]).wait()
            took_s = time.perf_counter() - begin
            window.close()
        _require_pattern(arena, size)
        return size / max(took_s, 1e-9)
    finally:
        mapped.release()
        arena.close()


def _require_pattern(arena: DeviceArena, size: int) -> None:
    for number in range(-(-size // TILE_BYTES)):
        at = number * TILE_BYTES
        found = arena.read(at, min(TILE_BYTES, size - at))
        wrong = np.flatnonzero(found != tile(number)[: len(found)])
        if len(wrong):
            raise TransportError(f"of {size:,} bytes that arrived, byte {at + int(wrong[0]):,} is another one")
