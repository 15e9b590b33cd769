"""A gate: a word of pinned memory that two processes share, for which work on a device waits, and no thread does.

    source       makes it, lends it, and begins a pass that waits on the device until the word says a number
    destination  has its device write that number, after the copies that read the source's memory
    source       is by its host always able to write it too: so nothing waits for a process that has died

Each attempt has a number of its own, and mostly a word of its own for it: there are as many as the page holds. Whoever
was lent the gate for an earlier attempt does not know the number, and what it writes late shuts nothing again.
"""

import fcntl
import hashlib
import mmap
import os
import time

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.memory import MemoryKit, Part, PendingCopy, Word
from worldmove.units import PAGE_BYTES

LOOK_EVERY_S = 0.0001
_WORD_BYTES, _TRIAL = 4, 1
_NUM_WORDS = PAGE_BYTES // _WORD_BYTES
# The standard library of Python 3.11 does not name these.
_F_ADD_SEALS, _F_GET_SEALS = 1033, 1034
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 0x01, 0x02, 0x04


def number_of(nonce: bytes) -> int:
    """Return what a gate says in an attempt with this nonce: never zero, which is what it says at first."""
    return int.from_bytes(hashlib.sha256(b"worldmove gate 1\0" + nonce).digest()[:_WORD_BYTES], "little") | 1


def early_number(number: int) -> int:
    """Return what the same gate says in that attempt once all that is brought early was read; in another word."""
    return number ^ (_NUM_WORDS // 2)


class Gate:
    """One process's map of it, pinned until ``release``."""

    def __init__(self, mapping: mmap.mmap, kit: MemoryKit) -> None:
        """Pin the map. Raises TransportError."""
        self._mapping = mapping
        self._words = np.frombuffer(mapping, dtype="<u4")
        self._address = int(self._words.ctypes.data)
        self._kit = kit
        self._unpin = kit.pin(Part(self._address, PAGE_BYTES))

    def for_number(self, number: int, *, is_parted: bool = False) -> "Latch":
        """Return the gate as it is in one attempt. ``is_parted``: a part is brought early, and counts by itself."""
        return Latch(self, number, is_parted=is_parted)

    def open_after_pulls(self, number: int) -> PendingCopy:
        """Have the device write a number once every pull that it has started is over. Raises TransportError."""
        return self._kit.write_after_pulls(self.word(number))

    def word(self, number: int) -> Word:
        """Return the word for a number, for a kit."""
        return Word(self._address + _WORD_BYTES * (number % _NUM_WORDS), number)

    def says(self, number: int) -> bool:
        """Return whether it says this number now."""
        return int(self._words[number % _NUM_WORDS]) == number

    def say(self, number: int) -> None:
        """Write it by this process's host."""
        self._words[number % _NUM_WORDS] = number

    def release(self) -> None:
        """Unpin it. Nothing may wait for it, or write it, any more. Idempotent. Raises TransportError."""
        unpin, self._unpin = self._unpin, _nothing
        unpin()


class OwnGate(Gate):
    """A source's, with the descriptor that another process maps it by."""

    def __init__(self, kit: MemoryKit) -> None:
        """Take a page of the system and pin it. Raises TransportError."""
        try:
            self.fd = os.memfd_create("worldmove-gate", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            raise TransportError(f"there is no memory for a gate: {error}") from error
        try:
            os.ftruncate(self.fd, PAGE_BYTES)
            # Whoever maps memory that shrinks is killed by reading it.
            fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
            super().__init__(_mapped(self.fd), kit)
            self._try()
        except BaseException:
            os.close(self.fd)
            raise

    def _try(self) -> None:
        """See that the device writes it: not every driver does. Raises TransportError."""
        try:
            self.open_after_pulls(_TRIAL).wait()
            if not self.says(_TRIAL):
                raise TransportError("the device does not write to a gate")
            self._words[_TRIAL] = 0
        except BaseException:
            super().release()
            raise

    def release(self) -> None:
        """Give it back. Idempotent. Raises TransportError."""
        descriptor, self.fd = self.fd, -1
        if descriptor >= 0:
            os.close(descriptor)
        super().release()


def opened_gate(descriptor: int, kit: MemoryKit) -> Gate:
    """Map another process's gate, pin it, and close the descriptor. Raises TransportError."""
    try:
        is_whole = os.fstat(descriptor).st_size == PAGE_BYTES
        if not is_whole or not fcntl.fcntl(descriptor, _F_GET_SEALS) & _SEAL_SHRINK:
            raise TransportError("the source's gate is not a page that stays")
        return Gate(_mapped(descriptor), kit)
    except OSError as error:
        raise TransportError(f"the source's gate cannot be mapped: {error}") from error
    finally:
        os.close(descriptor)


class Latch:
    """A gate in one attempt: shut until it says that attempt's number."""

    def __init__(self, gate: Gate, number: int, *, is_parted: bool = False) -> None:
        self.gate = gate
        self.number = number
        self._is_parted = is_parted
        self._was_open = False
        self.was_given_up = False
        """Whether it was opened before it was known that all was read: what came after it counts for nothing."""

    @property
    def word(self) -> Word:
        """What a kit is to wait for."""
        return self.gate.word(self.number)

    @property
    def early_word(self) -> Word:
        """What it is to wait for before it reads what was brought early."""
        return self.gate.word(early_number(self.number)) if self._is_parted else self.word

    def is_open(self) -> bool:
        """Whether somebody has opened it: once it was seen so, it is, whatever later attempts write."""
        self._was_open = self._was_open or self.gate.says(self.number)
        return self._was_open

    def open(self) -> None:
        """Open it by this process's host, the early word too: whoever has read all has read that. Idempotent."""
        self.gate.say(early_number(self.number))
        self.gate.say(self.number)

    def give_up(self) -> None:
        """Open it, whatever has been read by now. Nothing, where it is open already."""
        if not self.is_open():
            self.was_given_up = True
            self.open()

    def wait(self, at_most_s: float) -> bool:
        """Wait until it is open, for a little while; say whether it is."""
        over_at = time.monotonic() + at_most_s
        while not self.is_open():
            if time.monotonic() >= over_at:
                return False
            time.sleep(LOOK_EVERY_S)
        return True


def _nothing() -> None:
    """There is nothing to unpin any more."""


def _mapped(descriptor: int) -> mmap.mmap:
    try:
        mapping = mmap.mmap(descriptor, PAGE_BYTES)
        mapping.madvise(mmap.MADV_DONTFORK)
    except OSError as error:
        raise TransportError(f"there is no memory for a gate: {error}") from error
    return mapping
