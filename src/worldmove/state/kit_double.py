"""A device that is none: host memory stands in for a device's, so that all but the calls to a GPU is tried without one.

Tensors over storages of ``least_bytes`` count as the device's, and so do generators, if that is asked for. Its arenas
are memory files, which another process of the same user opens by this one's descriptor.
"""

import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from worldmove.errors import ArenaFull, NoMemory, TransportError
from worldmove.state import wmf1
from worldmove.state.array import raw_memory
from worldmove.state.memory import (
    WALK_STEP_BYTES,
    Behind,
    DeviceMemory,
    HostBytes,
    Numbers,
    Part,
    Piece,
    Pieces,
    Shifts,
    Word,
)
from worldmove.state.row_digests import row_digests
from worldmove.state.rows import Rows
from worldmove.state.standing import Standing

NAME = "double"
WORD_BYTES, LOOK_EVERY_S = 4, 0.0001
_GOLDEN, _LOW_BITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x0101010101010101)


class Done:
    """A copy that is over."""

    def is_done(self) -> bool:
        return True

    def wait(self) -> None:
        return


class Digested:
    """Digests that are there."""

    def __init__(self, digests: bytes) -> None:
        self._digests = digests

    def joined(self) -> bytes:
        return self._digests


class Awaited:
    """Digests that are taken once a word says its number; those of what comes early as soon as its own does."""

    def __init__(
        self, behind: Behind, early: Callable[[], Mapping[int, bytes]], all_of_it: Callable[[], tuple[bytes, ...]]
    ) -> None:
        self._behind = behind
        self._early = early
        self._all = all_of_it

    def joined(self) -> bytes:
        while not (_says(self._behind.early_word) or self._behind.is_open()):
            time.sleep(LOOK_EVERY_S)
        early = self._early()
        while not self._behind.is_open():
            time.sleep(LOOK_EVERY_S)
        return b"".join(early.get(index, digest) for index, digest in enumerate(self._all()))


class PlanOfDouble(NamedTuple):
    """Groups, and the numbers of those that come early."""

    groups: tuple[tuple[Part, ...], ...]
    early: frozenset[int]

    def digests(self, key: bytes, which: Iterable[int]) -> dict[int, bytes]:
        """Return what the numpy twin says of some groups."""
        table = wmf1.Table.of(key)
        return {index: wmf1.group_digest(table, _joined(self.groups[index]), index) for index in which}


class DoubleKit:
    """A kit (``memory.MemoryKit``) over host memory."""

    name = NAME

    def __init__(self, *, least_bytes: int = 1024, generators: bool = False, capacity: int = 1 << 34) -> None:
        """``capacity``: how many bytes of arenas there may be at one time."""
        self.device_id = f"double-{os.geteuid()}"
        self._least_bytes = least_bytes
        self._generators = generators
        self._room = capacity
        self._files: dict[int, int] = {}
        self.standing = Standing()
        self._waited: list[Behind] = []

    @property
    def fields(self) -> Mapping[str, str]:
        """It has one, that it is the double."""
        return {"device.name": NAME}

    def holds(self, value: torch.Tensor | torch.Generator) -> bool:
        """Whether a tensor's storage is large enough to count as device memory."""
        if isinstance(value, torch.Generator):
            return self._generators
        return value.is_cpu and value.untyped_storage().nbytes() >= self._least_bytes

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
        words = _writable(part).view(np.uint64)
        np.multiply(np.arange(1, len(words) + 1, dtype=np.uint64), _GOLDEN, out=words)
        np.bitwise_or(words, _LOW_BITS, out=words)

    def storage(self, part: Part, owner: object) -> torch.UntypedStorage:
        """Return torch's view of the memory."""
        return torch.from_numpy(_writable(part, owner)).untyped_storage()

    def nothing(self) -> torch.UntypedStorage:
        """Return a storage without a byte."""
        return torch.empty(0, dtype=torch.uint8, device="cpu").untyped_storage()

    def start_copy(self, pieces: Pieces) -> Done:
        """Copy, at once."""
        for source, destination, length in np.asarray(pieces, dtype=np.int64).reshape(-1, 3).tolist():
            np.copyto(_writable(Part(destination, length)), raw_memory(source, length, []))
        return Done()

    def start_pull(self, pieces: Pieces) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def start_walk(self, part: Part) -> Done:
        """Read a few bytes, for what they are worth."""
        raw_memory(part.address, part.length, [])[::WALK_STEP_BYTES].max()
        return Done()

    def write_after_pulls(self, word: Word) -> Done:
        """Write it, at once: so are pulls."""
        _writable(Part(word.address, WORD_BYTES)).view("<u4")[0] = word.value
        return Done()

    def pin(self, part: Part) -> Callable[[], None]:
        """Do nothing but wait: all of its memory is host memory."""
        self._wait_for_all()
        return self._wait_for_all

    def start_copy_out(self, pieces: Sequence[Piece]) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def start_copy_in(self, pieces: Sequence[Piece]) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def read(self, part: Part) -> HostBytes:
        """Copy to host memory."""
        return raw_memory(part.address, part.length, []).copy()

    def write(self, address: int, data: HostBytes) -> None:
        """Copy from host memory."""
        np.copyto(_writable(Part(address, len(data))), data)

    def read_all(self, parts: Sequence[Part]) -> list[HostBytes]:
        """Copy to host memory."""
        return [self.read(part) for part in parts]

    def write_all(self, runs: Sequence[tuple[int, HostBytes]]) -> None:
        """Copy from host memory."""
        for address, data in runs:
            self.write(address, data)

    def plan(self, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers = ()) -> object:
        """Keep the groups."""
        return PlanOfDouble(tuple(tuple(group) for group in groups), frozenset(map(int, early)))

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Exchange some of the groups."""
        assert isinstance(plan, PlanOfDouble)
        groups = list(plan.groups)
        for first, end, by in shifts.tolist():
            groups[first:end] = [tuple(Part(at + by, length) for at, length in group) for group in groups[first:end]]
        return plan._replace(groups=tuple(groups))

    def fingerprints(self, plan: object, key: bytes) -> tuple[bytes, ...]:
        """Return what the numpy twin says."""
        assert isinstance(plan, PlanOfDouble)
        return tuple(plan.digests(key, range(len(plan.groups))).values())

    def begin_fingerprints(self, plan: object, key: bytes, behind: Behind | None = None) -> Digested | Awaited:
        """Take them: at once, or when somebody waits for them and the word says its number."""
        if behind is None:
            return Digested(b"".join(self.fingerprints(plan, key)))
        self.standing.add(behind)
        self._waited = [*(other for other in self._waited if not other.is_open()), behind]
        assert isinstance(plan, PlanOfDouble)
        early = sorted(plan.early)
        return Awaited(behind, lambda: plan.digests(key, early), lambda: self.fingerprints(plan, key))

    def row_digests(self, base: int, offsets: Numbers, lengths: Numbers) -> torch.Tensor:
        """Return what the numpy twin says."""
        memory = raw_memory(base, int((offsets + lengths).max(initial=0)), [])
        digests = row_digests(memory, Rows(offsets=offsets, lengths=lengths))
        return torch.from_numpy(digests.view(np.int64))

    @contextmanager
    def apart(self) -> Iterator[torch.device]:
        """There is one order alone."""
        yield torch.device("cpu")

    def prepare_key(self, key: bytes) -> None:
        """Draw a key's coefficients; the last few stay ready."""
        wmf1.Table.of(key)

    def save_generator(self, generator: torch.Generator) -> bytes:
        """Return the whole state."""
        return generator.get_state().numpy().tobytes()

    def load_generator(self, state: bytes) -> torch.Generator:
        """Return a new generator in a saved state."""
        generator = torch.Generator(device="cpu")
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        return generator

    def _wait_for_all(self) -> None:
        """Wait as a device does, until all that it was asked for is done."""
        with self.standing.none():
            while any(not behind.is_open() for behind in self._waited):
                time.sleep(LOOK_EVERY_S)


def _says(word: Word) -> bool:
    return int(_writable(Part(word.address, WORD_BYTES)).view("<u4")[0]) == word.value


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


class _Writable:
    """Bytes at an address, for numpy to write."""

    def __init__(self, part: Part, owner: object) -> None:
        self.__array_interface__ = {
            "data": (part.address, False),
            "shape": (part.length,),
            "typestr": "|u1",
            "version": 3,
        }
        self.owner = owner


def _writable(part: Part, owner: object = None) -> HostBytes:
    return np.asarray(_Writable(part, owner))


def _joined(group: Sequence[Part]) -> memoryview | bytes:
    parts = [raw_memory(part.address, part.length, []).data for part in group]
    return parts[0] if len(parts) == 1 else b"".join(parts)
