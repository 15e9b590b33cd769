"""What every path between two devices of this machine really carries: random patterns, both ways, process to process.

Whether a path is whole is seen from the bytes that arrived, never from a name or from what a driver says that it can.
"""

import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from worldmove.cli.benches.path_here import PathHere
from worldmove.cli.device_source import TILE_BYTES, tile
from worldmove.errors import ArenaFull, TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit
from worldmove.worker.path_notes import PathNote

KEPT_S = 86_400.0
"""How long a probe's findings count; a reboot, a driver or a cable may change them at any time."""
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30)


class OtherBytes(TransportError):
    """A path brought other bytes than were sent, and said nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFound:
    """One path in one direction. ``rates``: bytes per second by size; ``why`` it is not whole, or empty."""

    transport: str
    source: str
    destination: str
    rates: dict[int, float]
    why: str = ""
    ids: tuple[str, str] | None = None
    """The devices' own identities, where there are such devices."""
    lied: bool = False
    """Whether other bytes arrived than were sent; else it may have been a device without room."""


def devices() -> tuple[str, ...]:
    """Name this machine's GPUs."""
    return tuple(f"cuda:{index}" for index in range(torch.cuda.device_count()))


def probe_all(names: Sequence[str], sizes: Sequence[int] = SIZES) -> list[PathFound]:
    """Try every pair in both directions, a device with itself too, by each path of this host between devices."""
    pairs = [(source, destination) for source in names for destination in names]
    return [probe(*pair, sizes, transport) for pair in pairs for transport in TRANSPORTS]


def probe(source: str, destination: str, sizes: Sequence[int], transport: str) -> PathFound:
    """Pull a pattern from another process's memory in each size, and look at every byte that came."""
    rates: dict[int, float] = {}
    kit, other, seed = kit_of(destination), kit_of(source), secrets.randbits(63)
    why, lied = "", False
    try:
        if kit is None:
            raise TransportError(f"{destination} is no device")
        with (
            TemporaryDirectory(prefix="worldmove-doctor-") as folder,
            _held(source, max(sizes), seed, transport, folder) as said,
            OPENED[transport](kit, said, max(sizes), folder) as pull,
        ):
            for size in sizes:
                rates[size] = _pulled(kit, pull, size, seed)
    except (TransportError, ArenaFull) as error:
        why, lied = str(error), isinstance(error, OtherBytes)
    ids = None if kit is None or other is None else (other.device_id, kit.device_id)
    return PathFound(
        transport=transport, source=source, destination=destination, rates=rates, why=why, ids=ids, lied=lied
    )


def notes_of(paths: Sequence[PathFound], now: float) -> list[PathNote]:
    """Return what is to be kept of a probe: nothing of a path that could not be tried."""
    return [
        PathNote(
            transport=found.transport,
            source=found.ids[0],
            destination=found.ids[1],
            source_name=found.source,
            destination_name=found.destination,
            measured_at=now,
            until=now + KEPT_S,
            rates={str(size): rate for size, rate in found.rates.items()},
            why=found.why,
        )
        for found in paths
        if found.ids is not None and (found.lied or not found.why)
    ]


@contextmanager
def _held(device: str, num_bytes: int, seed: int, transport: str, folder: str) -> Iterator[bytes]:
    """Let another process hold the pattern; yield what it is had by. Raises TransportError if it could not."""
    module = [sys.executable, "-m", "worldmove.cli.device_source"]
    command = [*module, device, str(num_bytes), str(seed), transport, f"{folder}/there"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().strip()
            if not said:
                raise TransportError(f"no process could hold {num_bytes} bytes on {device}")
            yield bytes.fromhex(said)
        finally:
            process.kill()


Pull = Callable[[Sequence[Extent], DeviceArena], None]
"""Brings extents to the same offsets of a slot."""


@contextmanager
def _by_peer(kit: MemoryKit, handle: bytes, num_bytes: int, folder: str) -> Iterator[Pull]:
    mapped = kit.open(handle, num_bytes)

    def pull(extents: Sequence[Extent], arena: DeviceArena) -> None:
        window = arena.lend()
        window.start_copy(mapped.address, extents).wait()
        window.close()

    try:
        yield pull
    finally:
        mapped.release()


@contextmanager
def _by_staged(kit: MemoryKit, ticket: bytes, num_bytes: int, folder: str) -> Iterator[Pull]:
    with PathHere(Path(folder) / "here", kit, random.Random(num_bytes), "staged") as path:
        path.connect(ticket)
        try:
            yield path.pull
        finally:
            path.disconnect()


OPENED: Mapping[str, Callable[[MemoryKit, bytes, int, str], AbstractContextManager[Pull]]] = {
    "peer": _by_peer,
    "staged": _by_staged,
}
TRANSPORTS = tuple(OPENED)


def _pulled(kit: MemoryKit, pull: Pull, size: int, seed: int) -> float:
    """Pull twice; compare what came the second time, and return its rate. Raises TransportError where it differs."""
    arena = DeviceArena(size, "worldmove-doctor", kit)
    try:
        took_s = 0.0
        for _ in range(2):
            arena.poison()
            begin = time.perf_counter()
            pull([Extent(offset=0, length=size)], arena)
            took_s = time.perf_counter() - begin
        _require_pattern(arena, size, seed)
        return size / max(took_s, 1e-9)
    finally:
        arena.close()


def _require_pattern(arena: DeviceArena, size: int, seed: int) -> None:
    for number in range(-(-size // TILE_BYTES)):
        at = number * TILE_BYTES
        found = arena.read(at, min(TILE_BYTES, size - at))
        wrong = np.flatnonzero(found != tile(number, seed)[: len(found)])
        if len(wrong):
            raise OtherBytes(f"of {size:,} bytes that arrived, byte {at + int(wrong[0]):,} is another one")
