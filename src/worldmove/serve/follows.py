"""What a follower made of each block, beside what was shown of it: which was the first that differed. Pure."""

import hashlib
from collections.abc import Sequence

KEPT = 1024
"""Blocks of which it is remembered what was shown. Of older ones nothing is said: the proof is taken all the same."""


class FollowBook:
    """One session's. Whichever side comes first is waited for."""

    def __init__(self) -> None:
        self._shown: dict[int, bytes] = {}
        self._waiting: dict[int, bytes] = {}
        self._attempt = ""
        self._first: int | None = None

    def shown(self, block: int, frames: Sequence[bytes]) -> None:
        """A block was shown, with frames of these digests."""
        self._shown[block] = _of(frames)
        if len(self._shown) > KEPT:
            del self._shown[next(iter(self._shown))]
        followed = self._waiting.pop(block, None)
        if followed is not None:
            self._compare(block, followed)

    def stepped(self, attempt: str, block: int, frames: Sequence[bytes]) -> None:
        """An attempt's follower has made a block. Only the newest attempt's is remembered."""
        if attempt < self._attempt:
            return
        if attempt != self._attempt:
            self._attempt, self._first = attempt, None
            self._waiting.clear()
        if block in self._shown:
            self._compare(block, _of(frames))
        elif len(self._waiting) < KEPT:
            self._waiting[block] = _of(frames)

    def first_difference(self, attempt: str) -> int | None:
        """Return the first block of which an attempt's follower made other frames; None if it made none."""
        return self._first if attempt == self._attempt else None

    def _compare(self, block: int, followed: bytes) -> None:
        if self._shown[block] != followed:
            self._first = block if self._first is None else min(block, self._first)


def _of(frames: Sequence[bytes]) -> bytes:
    """Return one digest of a block's: many blocks of many frames are remembered."""
    return hashlib.sha256(b"".join(frames)).digest()
