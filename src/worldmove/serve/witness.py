"""What was shown of a session, by its frames' digests: what a copy that took over has replayed must equal it. Pure."""

from collections.abc import Sequence

from worldmove.worker.inputs import MAX_LISTS

MAX_BLOCKS = MAX_LISTS
"""So many are computed anew at most: whatever is behind by more is let go. A digest takes 32 bytes for each frame."""


class Witness:
    """One session's newest blocks, as this server has shown them or heard of them."""

    def __init__(self) -> None:
        self._shown: dict[int, tuple[bytes, ...]] = {}
        self._replayed: dict[int, tuple[bytes, ...]] = {}

    def shown(self, block: int, frame_sha256: Sequence[bytes]) -> None:
        """A block was shown."""
        _put(self._shown, block, frame_sha256)

    def replayed(self, block: int, frame_sha256: Sequence[bytes]) -> None:
        """Whoever owns the session now has computed a block anew."""
        _put(self._replayed, block, frame_sha256)

    def was_replayed(self, block: int, frame_sha256: Sequence[bytes]) -> bool:
        """Say whether a block is what whoever owns the session now has computed of it: whoever else made it, it is."""
        return self._replayed.get(block) == tuple(frame_sha256)

    def is_equal(self, block: int, frame_sha256: Sequence[bytes]) -> bool | None:
        """Say whether a block was computed anew as it was shown; None where nobody knows how it was."""
        shown = self._shown.get(block)
        return None if shown is None else shown == tuple(frame_sha256)


def _put(known: dict[int, tuple[bytes, ...]], block: int, frame_sha256: Sequence[bytes]) -> None:
    known[block] = tuple(frame_sha256)
    while len(known) > MAX_BLOCKS:
        del known[min(known)]
