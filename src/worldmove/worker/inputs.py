"""The closed input lists that a copy holds: what it will step next, and what it may be asked to step again."""

from collections.abc import Sequence

from worldmove.engine.base import KeyChange

MAX_LISTS = 4096
"""Whatever waits and is behind by so many blocks is let go, and said to be: nobody would wait until they are computed
anew, and without the oldest it could never go on at all."""
MOST_LISTS = 2 * MAX_LISTS
"""More would be a gateway that never hears of acknowledged blocks; the oldest are dropped."""


class InputLists:
    """Lists by block. A list once taken is never replaced: another one for the same block is a repeat."""

    def __init__(self) -> None:
        self._lists: dict[int, tuple[KeyChange, ...]] = {}
        self._first = 0

    def put(self, block: int, changes: Sequence[KeyChange]) -> None:
        """Keep a block's list, unless it is held already or no longer needed."""
        if block < self._first or block in self._lists:
            return
        self._lists[block] = tuple(changes)
        if len(self._lists) > MOST_LISTS:
            del self._lists[min(self._lists)]

    @property
    def is_too_long(self) -> bool:
        """Whether whoever waits with them is too far behind to go on ever."""
        return len(self._lists) > MAX_LISTS

    def get(self, block: int) -> tuple[KeyChange, ...] | None:
        """Return a block's list, or None while it is not here."""
        return self._lists.get(block)

    def skips(self, block: int) -> bool:
        """Whether a block's list will not come: lists come in order, and a later one is here.

        A server that was started again has no list that every holder but this one had used up.
        """
        return block not in self._lists and any(later > block for later in self._lists)

    def num_from(self, block: int) -> int:
        """Return of how many blocks from this one on a list is kept."""
        return sum(number >= block for number in self._lists)

    def held(self) -> tuple[tuple[int, tuple[KeyChange, ...]], ...]:
        """Return every list that is kept, with its block, in order."""
        return tuple(sorted(self._lists.items()))

    def forget_before(self, block: int) -> None:
        """Drop the lists of earlier blocks, now and when they come again."""
        self._first = max(self._first, block)
        for old in [number for number in self._lists if number < block]:
            del self._lists[old]
