"""What is free in an arena, and the first place in it that fits. Pure."""

from collections.abc import Sequence

from worldmove.errors import ArenaFull
from worldmove.units import ALIGNMENT_BYTES, round_up


class Room:
    """The gaps between what is taken. A state has hundreds of storages, and this is inside the pause of a move."""

    def __init__(self, taken: Sequence[tuple[int, int]], size: int) -> None:
        """``taken``: begin and end of each piece, sorted and disjoint."""
        self._gaps: list[tuple[int, int]] = []
        free = 0
        for begin, end in (*taken, (size, size)):
            if begin > free:
                self._gaps.append((free, begin))
            free = max(free, end)

    def take(self, num_bytes: int, remainder: int) -> int:
        """Return the first free place with a remainder modulo 256, which is free no more. Raises ArenaFull.

        That tells of this piece alone: how many bytes it has, and how many would find a place.
        """
        for index, (begin, end) in enumerate(self._gaps):
            if end - begin < num_bytes:
                continue
            place = place_in(begin, remainder)
            if place + num_bytes <= end:
                left = [gap for gap in ((begin, place), (place + num_bytes, end)) if gap[0] < gap[1]]
                self._gaps[index : index + 1] = left
                return place
        raise ArenaFull(num_bytes, max([0, *(end - place_in(begin, remainder) for begin, end in self._gaps)]))


def place_in(begin: int, remainder: int) -> int:
    """Return the first place of a gap that has a remainder modulo 256; it may lie behind the gap's end."""
    return round_up(begin - remainder, ALIGNMENT_BYTES) + remainder
