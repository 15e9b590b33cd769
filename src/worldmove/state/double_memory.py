"""Memory of the double: files of memory, which another process of the same user opens by this one's descriptor."""

import mmap
import os
import time
from collections.abc import Callable

import numpy as np
import torch

from worldmove.errors import ArenaFull, NoMemory, TransportError
from worldmove.state.array import writable_memory
from worldmove.state.memory import Behind, DeviceMemory, HostBytes, Part, Word
from worldmove.state.standing import Standing

WORD_BYTES, LOOK_EVERY_S = 4, 0.0001
_GOLDEN, _LOW_BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x0101010101010101)


class DoubleMemory:
    """What there is of memory on one double, and what it waits for behind words."""

    def __init__(self, capacity: int) -> None:
        self.standing = Standing()
        self._room = capacity
        self._files: dict[int, int] = {}
        self._waited: list[Behind] = []

    def allocate(self, num_bytes: int) -> DeviceMemory:
        """Take a new memory file. Raises ArenaFull beyond the capacity, NoMemory where the system has less."""
        if num_bytes > self._room:
            raise ArenaFull(num_bytes, self._room)
        self._wait_for_all()
        descriptor, mapping = _memory_file(num_bytes)
        self._room -= num_bytes
        address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
        self._files[address] = descriptor
        held = [mapping]

        def release() -> None:
            self._wait_for_all()
            if held:  # the mapping goes with the last tensor over it
                held.clear()
                self._room += num_bytes
                os.close(self._files.pop(address))

        return DeviceMemory(address=address, num_bytes=num_bytes, release=release, owner=mapping)

    def export(self, memory: DeviceMemory) -> bytes:
        """Name the memory file by this process's descriptor."""
        return f"/proc/{os.getpid()}/fd/{self._files[memory.address]}".encode()

    def open(self, handle: bytes, num_bytes: int) -> DeviceMemory:
        """Map another process's memory file, for reading. Raises TransportError."""
        self._wait_for_all()
        try:
            descriptor = os.open(handle, os.O_RDONLY | os.O_CLOEXEC)
            try:
                found = os.fstat(descriptor).st_size
                if found < num_bytes:
                    raise TransportError(f"the source's memory has {found} bytes, not {num_bytes}")
                mapping = mmap.mmap(descriptor, num_bytes, prot=mmap.PROT_READ)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise TransportError(f"the source's memory cannot be mapped: {error}") from error
        address = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
        return DeviceMemory(address=address, num_bytes=num_bytes, release=self._wait_for_all, owner=mapping)

    def poison(self, part: Part) -> None:
        """Fill whole words; an arena has whole pages."""
        words = writable(part).view(np.uint64)
        np.multiply(np.arange(1, len(words) + 1, dtype=np.uint64), _GOLDEN, out=words)
        np.bitwise_or(words, _LOW_BITS, out=words)

    def storage(self, part: Part, owner: object) -> torch.UntypedStorage:
        """Return torch's view of the memory."""
        return torch.from_numpy(writable(part, owner)).untyped_storage()

    def nothing(self) -> torch.UntypedStorage:
        """Return a storage without a byte."""
        return torch.empty(0, dtype=torch.uint8, device="cpu").untyped_storage()

    def pin(self, part: Part) -> Callable[[], None]:
        """Do nothing but wait: all of its memory is host memory."""
        self._wait_for_all()
        return self._wait_for_all

    def _wait_behind(self, behind: Behind) -> None:
        """It is asked for something that stands behind a word."""
        self.standing.add(behind)
        self._waited = [*(other for other in self._waited if not other.is_open()), behind]

    def _wait_for_all(self) -> None:
        """Wait as a device does, until all that it was asked for is done."""
        with self.standing.none():
            wait_until(lambda: all(behind.is_open() for behind in self._waited))


def says(word: Word) -> bool:
    """Whether a word says its number."""
    return int(writable(Part(word.address, WORD_BYTES)).view("<u4")[0]) == word.value


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return once it is."""
    while not is_so():
        time.sleep(LOOK_EVERY_S)


def writable(part: Part, owner: object = None) -> HostBytes:
    """Return the bytes of a part, to be written."""
    return writable_memory(part.address, part.length, owner)


def _memory_file(num_bytes: int) -> tuple[int, mmap.mmap]:
    """Return a new one's descriptor, and its memory. Raises NoMemory."""
    descriptor = -1
    try:
        descriptor = os.memfd_create("worldmove-double", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, num_bytes)
        return descriptor, mmap.mmap(descriptor, num_bytes)
    except (OSError, OverflowError, MemoryError) as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise NoMemory(f"{num_bytes:,} bytes: {getattr(error, 'strerror', None) or error}") from error
