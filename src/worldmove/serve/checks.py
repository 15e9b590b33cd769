"""The check of the future: what a retired copy computed beside what the owner showed. Pure."""

from typing import TypeVar

from worldmove.serve.play_messages import Check, Digests
from worldmove.worker.messages import BlockDone, CheckDone

K = TypeVar("K")

KEPT = 64
"""Blocks of which the digests are remembered, so that neither side's word waits for ever."""


class CheckBook:
    """Matches the two sides of a block, whichever comes first.

    Equal means: the same state digest and the same frames. Of a block whose frames are the same, and of whose state one
    side could give no digest, it is not known: what was not compared is called neither equal nor another.
    """

    def __init__(self) -> None:
        self._shown: dict[int, Digests] = {}
        self._waiting: dict[tuple[int, str], Digests] = {}

    def shown(self, block: int, owner: Digests) -> tuple[Check, ...]:
        """Note what the owner showed; return the checks that this completes."""
        _remember(self._shown, block, owner)
        ready = [key for key in self._waiting if key[0] == block]
        return tuple(self._check(key, self._waiting.pop(key)) for key in ready)

    def stepped(self, block: int, attempt: str, retired: Digests) -> tuple[Check, ...]:
        """Note what a retired copy computed; return the check, if the owner's block has been shown."""
        if block not in self._shown:
            _remember(self._waiting, (block, attempt), retired)
            return ()
        return (self._check((block, attempt), retired),)

    def _check(self, key: tuple[int, str], retired: Digests) -> Check:
        block, attempt = key
        owner = self._shown[block]
        return Check(block=block, attempt=attempt, owner=owner, retired=retired, equal=_are_equal(owner, retired))


def _are_equal(owner: Digests, retired: Digests) -> bool | None:
    if owner.frames == retired.frames and not (owner.state_digest and retired.state_digest):
        return None
    return owner == retired


def digests_of(message: BlockDone | CheckDone) -> Digests:
    """Return what one side says of a block."""
    return Digests(state_digest=message.state_digest, frames=tuple(sha.hex() for sha in message.frame_sha256))


def _remember(book: dict[K, Digests], key: K, digests: Digests) -> None:
    book[key] = digests
    while len(book) > KEPT:
        book.pop(next(iter(book)))
