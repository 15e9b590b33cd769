"""The memory of a process's one device, as the rest of ``state`` sees it: addresses, and a kit that does the work.

Addresses of host and device never coincide (unified addressing), so a piece of memory is an address and a length,
and its kind. Whoever orders byte work about never reads a byte of the device himself: that is for a kit.

Two kits: ``kit_cuda`` for a GPU, ``kit_double`` for trials without one.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

HANDLE_BYTES = 64
"""What names an allocation to another process, at most."""
WALK_STEP_BYTES, WALK_BYTES = 1 << 16, 64
"""How far apart a walk looks, and at how much. The first copy of 1.67 GB over NVLink after other work takes 5.3 ms, one
right after another 4.3: as it seems the copy engine has to look up where each page lies. A walk takes less than a
millisecond; one that looks each 2 MiB gains a fifth of that (measured on two H200, docs/design/0006).
"""

HostBytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]


class Piece(NamedTuple):
    """``length`` bytes from one address to another."""

    source: int
    destination: int
    length: int


Pieces = Sequence[Piece] | NDArray[np.int64]
"""Or lines of source, destination and length."""


class Part(NamedTuple):
    """``length`` bytes at an address."""

    address: int
    length: int


class Word(NamedTuple):
    """Four bytes of pinned memory at an address, and the number that they are to say."""

    address: int
    value: int


Shifts = NDArray[np.int64]
"""Lines of [first, end, by]: the groups of a plan from ``first`` to before ``end`` lie ``by`` bytes further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """One allocation, of this process or mapped from another. Exists until ``release`` was called."""

    address: int
    num_bytes: int
    release: Callable[[], None]
    """Give it back, or unmap it. Idempotent."""
    owner: object = None
    """What a tensor over it keeps alive."""


class PendingCopy(Protocol):
    """A copy under way."""

    def is_done(self) -> bool:
        """Whether every byte has landed. Never waits. Raises TransportError if the device has failed."""
        ...

    def wait(self) -> None:
        """Return when every byte has landed. Raises TransportError."""
        ...


class PendingDigests(Protocol):
    """Digests under way."""

    def joined(self) -> bytes:
        """Wait, and return all of them, 16 bytes each, one after the other. Raises TransportError if the device failed.

        Once, and before the plan is launched again.
        """
        ...


class Behind(Protocol):
    """What work on a device may stand behind."""

    @property
    def word(self) -> Word:
        """It goes on once this says its number."""
        ...

    @property
    def early_word(self) -> Word:
        """The same for the first part of a plan in two parts; ``word`` itself where they go on together."""
        ...

    def is_open(self) -> bool:
        """Whether it does."""
        ...

    def give_up(self) -> None:
        """Let it go on now: what comes of it counts for nothing. Nothing, where it was open already."""
        ...


class MemoryKit(Protocol):
    """All byte work on one device. Calls come from any thread."""

    @property
    def name(self) -> str:
        """What kind of device it is, and which: ``cuda:0``."""
        ...

    @property
    def device_id(self) -> str:
        """The device's own identity, the same in every process."""
        ...

    @property
    def fields(self) -> Mapping[str, str]:
        """What of the device decides a block's bytes: compared before a byte travels (``state.environment``)."""
        ...

    def holds(self, value: torch.Tensor | torch.Generator) -> bool:
        """Whether a tensor or generator lies on this device."""
        ...

    def allocate(self, num_bytes: int) -> DeviceMemory:
        """Take memory outside any pool, at an address that is a multiple of 256. Raises ArenaFull, NoMemory."""
        ...

    def export(self, memory: DeviceMemory) -> bytes:
        """Return what another process opens the whole allocation with. Raises TransportError."""
        ...

    def open(self, handle: bytes, num_bytes: int) -> DeviceMemory:
        """Map another process's allocation, and see that it can be read. Raises TransportError.

        How large it is is asked of the device and not believed: where it has fewer bytes than that, it is refused.
        """
        ...

    def poison(self, part: Part) -> None:
        """Fill it with a pattern that differs from place to place and is nowhere zero; return when that is done."""
        ...

    def storage(self, part: Part, owner: object) -> torch.UntypedStorage:
        """Return torch's view of device memory; it keeps ``owner`` alive."""
        ...

    def nothing(self) -> torch.UntypedStorage:
        """Return a storage on the device without a byte."""
        ...

    def start_copy(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy within what this device can address, on a stream of the kit's own. Pieces do not overlap.

        Thousands of them are better told as int64[n, 3], with the fields of a piece.

        What the engine has written before, on whichever stream, must be complete.
        """
        ...

    def start_pull(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy from memory of another process, beside everything else that the device does.

        Only fingerprints of what it writes, begun later, come after it.
        """
        ...

    def start_walk(self, part: Part) -> PendingCopy:
        """Begin to read a few bytes of every page of another process's memory: a pull that comes soon finds its ways
        there known (``WALK_STEP_BYTES``).
        """
        ...

    def write_after_pulls(self, word: Word) -> PendingCopy:
        """Begin to write a word, after every pull that was started before, without anybody waiting for them here.

        Raises TransportError.
        """
        ...

    def pin(self, part: Part) -> Callable[[], None]:
        """Fix host memory where it lies, so that the device reads and writes it by itself; return what ends that.

        Raises TransportError. It takes milliseconds, and so does the end.
        """
        ...

    def start_copy_out(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy from the device to pinned host memory, beside everything else that it does."""
        ...

    def start_copy_in(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy from pinned host memory to the device, beside everything else that it does."""
        ...

    def read(self, part: Part) -> HostBytes:
        """Return device bytes, copied to host memory."""
        ...

    def write(self, address: int, data: HostBytes) -> None:
        """Copy host bytes to the device; return when they are there."""
        ...

    def read_all(self, parts: Sequence[Part]) -> list[HostBytes]:
        """Return several runs of device bytes, copied to host memory, after one wait."""
        ...

    def write_all(self, runs: Sequence[tuple[int, HostBytes]]) -> None:
        """Copy several runs of host bytes to addresses of the device; return when all are there."""
        ...

    def plan(self, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers = ()) -> object:
        """Prepare to read groups of parts, numbered from 0, as often as is wanted.

        ``early``: the numbers of those that stand behind a word of their own (``Behind.early_word``); ascending.
        """
        ...

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Return a plan of which some groups lie elsewhere; the old one is of no use any more."""
        ...

    def fingerprints(self, plan: object, key: bytes) -> tuple[bytes, ...]:
        """Return WMF1 of each group of a plan, under a key of 32 bytes, from one pass over the memory.

        Raises TransportError if the device has failed.
        """
        ...

    def begin_fingerprints(self, plan: object, key: bytes, behind: Behind | None = None) -> PendingDigests:
        """Begin what ``fingerprints`` returns, after every copy that was started before, and return at once.

        ``behind``: not before that word says its number. The device itself waits, and nothing else that the kit is
        asked for waits with it: what would, gives it up. Raises TransportError.
        """
        ...

    def row_digests(self, base: int, offsets: Numbers, lengths: Numbers) -> torch.Tensor:
        """Return the digests (``state.row_digests``) of rows from the address ``base`` on: int64[rows], on the device.

        Good for what is done ``apart``, or else once that is over. The arrays are not written to any more.
        """
        ...

    def apart(self) -> AbstractContextManager[torch.device]:
        """Let torch's work on the device go in the kit's order: it waits for nobody who plays, and nobody for it.

        Over at the end, whatever it has written.
        """
        ...

    def prepare_key(self, key: bytes) -> None:
        """Make ready for fingerprints under a key."""
        ...

    def save_generator(self, generator: torch.Generator) -> bytes:
        """Return the whole state of a generator of this device."""
        ...

    def load_generator(self, state: bytes) -> torch.Generator:
        """Return a new generator of this device in a saved state. Raises RuntimeError or ValueError."""
        ...
