"""The other end of ``doctor``'s look at paths between devices: a process that holds a pattern, and lets it be mapped.

``python -m worldmove.cli.device_source DEVICE BYTES SEED PATH SOCKET`` writes one line, in hex what it is had by over a
path (of ``peer`` the handle, else the ticket), and ends with its input.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import numpy as np

from worldmove.cli.benches.path_here import PathHere
from worldmove.errors import UserError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kits import kit_of
from worldmove.state.memory import HostBytes

TILE_BYTES = 1 << 24
_STEP = 0x9E3779B97F4A7C15


def tile(number: int, seed: int) -> HostBytes:
    """Return the pattern's part of a number: random words, different in every part, and the same in every process."""
    words = np.random.Generator(np.random.PCG64(seed)).integers(0, 2**64, TILE_BYTES // 8, dtype=np.uint64)
    return cast("HostBytes", (words ^ np.uint64(number * _STEP % 2**64)).view(np.uint8))


def main() -> None:
    """Fill the memory, say by what it is had, and hold it until standard input ends."""
    device, num_bytes, seed, name, socket = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    with held(device, num_bytes, seed, name, socket) as said:
        sys.stdout.write(said.hex() + "\n")
        sys.stdout.flush()
        sys.stdin.read()


@contextmanager
def held(device: str, num_bytes: int, seed: int, name: str, socket: str) -> Iterator[bytes]:
    """Hold the pattern in this process; yield what it is had by. Raises UserError if there is no such device."""
    kit = kit_of(device)
    if kit is None:
        raise UserError(f"{device} is no device")
    arena = DeviceArena(num_bytes, "worldmove-doctor", kit)
    for number in range(-(-num_bytes // TILE_BYTES)):
        part = tile(number, seed)[: num_bytes - number * TILE_BYTES]
        arena.write(number * TILE_BYTES, part)
    if name == "peer":
        yield arena.handle
    else:
        with PathHere(Path(socket), kit, random.Random(seed), name) as path:
            yield path.export(arena)


if __name__ == "__main__":
    main()
