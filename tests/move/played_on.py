"""A state that is played on while it is brought over: cells, a path, blocks at their times. No arena, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil

from worldmove.move.affordable import Affordable
from worldmove.move.precopy import Next, PrecopyConfig, Seen, Verdict, decide

PERIOD_S = 1.0
"""Between two blocks. A cell is one byte."""
TRIED = 1.5
"""Periods after which the next boundary is the last that is tried (``worker.calm.PATIENCE``)."""
KINDS = ("rolled", "rewritten", "ring", "still")


@dataclass(frozen=True, slots=True)
class Leaf:
    """Some cells that each block treats alike: a window whose newer half moves up, a cache that is made anew, a ring
    of which a quarter is written, or what stays. ``size``: a multiple of four."""

    kind: str
    size: int


Holds = tuple[int, int, int]
"""What a cell holds: of which leaf, and two numbers that tell it from all else there."""


def state_after(leaves: Sequence[Leaf], num_blocks: int) -> list[Holds]:
    """Return what each cell holds after so many blocks."""
    return [_holds(number, leaf, cell, num_blocks) for number, leaf in enumerate(leaves) for cell in range(leaf.size)]


def _holds(number: int, leaf: Leaf, cell: int, num_blocks: int) -> Holds:
    half, quarter = leaf.size // 2, leaf.size // 4
    match leaf.kind:
        case "rolled":
            return number, num_blocks + cell // half, cell % half
        case "rewritten":
            return number, num_blocks, cell
        case "ring":
            return number, (num_blocks - cell // quarter - 1) // 4, cell
        case _:
            return number, 0, cell


def changed(leaves: Sequence[Leaf], num_blocks: int) -> tuple[int, int]:
    """Return how many cells so many blocks change, and how many of these come to hold what none did."""
    before, after = state_after(leaves, 100), state_after(leaves, 100 + num_blocks)
    known = set(before)
    return sum(a != b for a, b in zip(before, after, strict=True)), sum(each not in known for each in after)


class Course:
    """One move's way to its freeze; ``phase``: how long after its beginning the first block ends."""

    def __init__(self, leaves: Sequence[Leaf], rate: float, phase: float, stands_s: float) -> None:
        self._leaves, self._rate, self._phase, self._stands_s = leaves, rate, phase, stands_s
        self._cells = [(number, leaf, cell) for number, leaf in enumerate(leaves) for cell in range(leaf.size)]
        self._size = len(self._cells)
        self._at = 0.0
        self._last = 10**9
        """The block end after which none is played."""
        self._there: list[Holds] = [(-1, 0, cell) for cell in range(self._size)]

    def rounds(self, most: Affordable, patience_s: float) -> Verdict:
        """Go on as the destination does, until there is no further round."""
        seen = Seen(num_rounds=0, state_bytes=self._size, time_left_s=patience_s, affordable_bytes=most.standing)
        which, begun, before = set(range(self._size)), 0.0, None
        while True:
            now = replace(seen, round_s=self._at - begun, time_left_s=patience_s - self._at)
            verdict = decide(now, PrecopyConfig())
            if verdict.next is not Next.ROUND:
                return verdict
            start = self._at
            self._pull(sorted(which))
            seen = replace(seen, num_rounds=seen.num_rounds + 1, path_bytes_per_s=self._rate)
            if before is not None:
                differs = {cell for cell in range(self._size) if before[cell] != self._there[cell]}
                known = set(before)
                which = differs if seen.num_rounds == 2 else which | differs
                new = sum(self._there[cell] not in known for cell in differs)
                seen = replace(seen, changing_bytes=len(which), new_bytes_per_s=new / max(start - begun, 1e-9))
            before, begun = list(self._there), start

    def left(self) -> int:
        """Come to rest as the source does; return what is to be pulled once it is frozen."""
        try_until = self._at + TRIED * PERIOD_S
        first = self._num_ended(self._at)
        for number in count(first):
            ends_at = self._phase + number * PERIOD_S
            is_last = ends_at >= try_until
            if is_last:
                self._last = number
            lists_at = ends_at + self._stands_s
            late_s = max(0.0, self._at - lists_at)  # what was begun at the boundary before comes first
            self._at = max(self._at, ends_at)
            self._pull(self._lacking(number + 1), until=lists_at if is_last else float("inf"))
            if is_last or self._at < lists_at:
                self._last = number
                return len(self._lacking(number + 1)) + round(late_s * self._rate)
        raise AssertionError

    def _num_ended(self, at: float) -> int:
        return min(max(0, ceil((at - self._phase) / PERIOD_S)), self._last + 1)

    def _lacking(self, num_blocks: int) -> list[int]:
        """Move what lies elsewhere; return the cells whose content does not."""
        wanted, known = state_after(self._leaves, num_blocks), set(self._there)
        lacking = [cell for cell in range(self._size) if wanted[cell] not in known]
        for cell in range(self._size):
            if wanted[cell] in known:
                self._there[cell] = wanted[cell]
        return lacking

    def _pull(self, cells: Sequence[int], until: float = float("inf")) -> None:
        for cell in cells:
            if self._at >= until:
                return
            self._at += 1.0 / self._rate
            self._there[cell] = _holds(*self._cells[cell], self._num_ended(self._at))
