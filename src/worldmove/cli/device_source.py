"""The other end of ``doctor``'s look at paths between devices: a process that holds a pattern, and lets it be mapped.

``python -m worldmove.cli.device_source DEVICE BYTES SEED`` writes one line, the handle in hex, and ends with its input.
"""

import sys
from typing import cast

import numpy as np

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
    """Fill the memory, say where it is, and hold it until standard input ends."""
    device, num_bytes, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kit = kit_of(device)
    if kit is None:
        raise UserError(f"{device} is no device")
    arena = DeviceArena(num_bytes, "worldmove-doctor", kit)
    for number in range(-(-num_bytes // TILE_BYTES)):
        part = tile(number, seed)[: num_bytes - number * TILE_BYTES]
        arena.write(number * TILE_BYTES, part)
    sys.stdout.write(arena.handle.hex() + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
