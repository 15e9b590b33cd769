"""One slot's memory.

Whoever receives its descriptor can map it for reading only: the seals are in the kernel's hands, not in ours.
"""

import fcntl
import mmap
import os

import numpy as np

from worldmove.errors import NoMemory
from worldmove.state.array import Memory
from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import MemoryKit
from worldmove.units import MIB, PAGE_BYTES, round_up

# The standard library of Python 3.11 does not name these.
_F_ADD_SEALS = 1033
_SEALS = 0x01 | 0x02 | 0x04 | 0x10  # F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE


class Arena:
    """One slot's memory: page-aligned, of a fixed size, shareable by descriptor for reading only."""

    def __init__(self, size: int, name: str) -> None:
        """Take ``size`` bytes (rounded up to whole pages) from the system. ``name`` is for /proc. Raises NoMemory."""
        self.size = round_up(max(size, 1), PAGE_BYTES)
        self.name = name
        self.fd = -1
        try:
            self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            self.memory: Memory = _mapped(self.fd, self.size)
            fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEALS)
        except (OSError, OverflowError, MemoryError) as error:  # no descriptor is left, too
            self.close()
            raise NoMemory(f"{self.size:,} bytes: {getattr(error, 'strerror', None) or error}") from error

    @property
    def buffer(self) -> memoryview:
        """Its bytes, writable."""
        return self.memory.data

    @property
    def address(self) -> int:
        """Where it begins in this process."""
        return int(self.memory.ctypes.data)

    def poison(self, begin: int = 0, end: int | None = None) -> None:
        """Fill it with a fixed pattern that differs from place to place and is nowhere zero.

        ``begin`` and ``end``: this part of it alone; whole MiB, or where it ends itself.
        """
        words = self.memory[begin:end].view(np.uint64)
        per_tile = min(MIB // 8, len(words))
        tile = np.arange(per_tile, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(0xA5A5A5A5A5A5A5A5)
        for number, at in enumerate(range(0, len(words), per_tile), begin // MIB):
            part = words[at : at + per_tile]
            np.bitwise_xor(tile[: len(part)], np.uint64(number * 0xD1B54A32D192ED03 % 2**64), out=part)
            np.bitwise_or(part, np.uint64(0x0101010101010101), out=part)

    def close(self) -> None:
        """Give the descriptor back. The memory stays as long as a tensor or view lies in it, then goes by itself."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self.memory = np.empty(0, dtype=np.uint8)


def _mapped(descriptor: int, size: int) -> Memory:
    """Return a file's memory, writable, made as long as that. Raises OSError, OverflowError, MemoryError."""
    os.ftruncate(descriptor, size)
    # Ours is mapped before the seal, so it stays the only writable mapping there can be; a fork gets none.
    mapping = mmap.mmap(descriptor, size)
    mapping.madvise(mmap.MADV_DONTFORK)
    return np.frombuffer(mapping, dtype=np.uint8)


AnyArena = Arena | DeviceArena


def new_arena(size: int, name: str, kit: MemoryKit | None) -> AnyArena:
    """Make a slot's memory: on the kit's device, or without one in host memory. Raises ArenaFull, NoMemory."""
    return Arena(size, name) if kit is None else DeviceArena(size, name, kit)
