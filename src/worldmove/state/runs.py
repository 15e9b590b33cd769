"""Many extents as two arrays: made, cut, joined and checked without a look at each."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from worldmove.state.extent import Extent

Numbers = NDArray[np.int64]


class Runs(Sequence[Extent]):
    """Extents in order. Whoever looks at each sees one like any other. Read-only."""

    __slots__ = ("lengths", "offsets")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, offsets: Numbers, lengths: Numbers) -> None:
        if len(offsets) != len(lengths):
            raise ValueError(f"{len(offsets)} offsets and {len(lengths)} lengths")
        self.offsets = offsets
        self.lengths = lengths

    @classmethod
    def of(cls, extents: Sequence[Extent]) -> "Runs":
        """Return extents as runs."""
        if isinstance(extents, Runs):
            return extents
        pairs = np.array([(extent.offset, extent.length) for extent in extents], dtype=np.int64).reshape(-1, 2)
        return cls(pairs[:, 0], pairs[:, 1])

    @property
    def ends(self) -> Numbers:
        """The first byte after each."""
        return self.offsets + self.lengths

    @property
    def num_bytes(self) -> int:
        """The bytes of all."""
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, which: int) -> Extent: ...

    @overload
    def __getitem__(self, which: slice) -> "Runs": ...

    def __getitem__(self, which: int | slice) -> "Extent | Runs":
        if isinstance(which, slice):
            return Runs(self.offsets[which], self.lengths[which])
        return Extent(offset=int(self.offsets[which]), length=int(self.lengths[which]))

    def __iter__(self) -> Iterator[Extent]:
        for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
            yield Extent(offset=offset, length=length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and list(self) == list(other)

    def cut(self, num_bytes: int) -> "Runs":
        """Return the same bytes, cut wherever so many of them have gone by, and where they were cut before."""
        ends = np.cumsum(self.lengths)
        total = int(ends[-1]) if len(ends) else 0
        begins = np.unique(np.concatenate((np.arange(0, total, num_bytes), ends[ends < total])))
        which = np.searchsorted(ends, begins, side="right")
        return Runs(self.offsets[which] + begins - (ends - self.lengths)[which], np.diff(begins, append=total))

    def batches(self, num_bytes: int) -> Iterator["Runs"]:
        """Yield the same bytes in order, so many at a time, the last ones fewer."""
        pieces = self.cut(num_bytes)
        begins = np.cumsum(pieces.lengths) - pieces.lengths
        firsts = np.flatnonzero(begins % num_bytes == 0).tolist()
        for first, last in pairwise([*firsts, len(pieces)]):
            yield pieces[first:last]

    def parted(self, num_bytes: int) -> tuple["Runs", "Runs"]:
        """Return so many bytes of the beginning, or all, and the rest."""
        ends = np.cumsum(self.lengths)
        whole = int(np.searchsorted(ends, num_bytes, side="right"))
        if whole == len(self):
            return self, self[:0]
        inside = num_bytes - (int(ends[whole - 1]) if whole else 0)
        first, rest = (Runs(each.offsets.copy(), each.lengths.copy()) for each in (self[: whole + 1], self[whole:]))
        first.lengths[-1] = inside
        rest.offsets[0] += inside
        rest.lengths[0] -= inside
        return first if inside else first[:-1], rest

    def num_shared(self, other: "Runs") -> int:
        """Return how many bytes are in another's runs too. Each ascends, and is disjoint."""
        return int((self._before(other.ends) - self._before(other.offsets)).sum())

    def _before(self, places: Numbers) -> Numbers:
        """Return how many of the bytes lie before each place."""
        if not len(self):
            return np.zeros_like(places)
        which = np.maximum(np.searchsorted(self.offsets, places, side="right") - 1, 0)
        inside = np.clip(places - self.offsets[which], 0, self.lengths[which])
        found: Numbers = np.cumsum(self.lengths)[which] - self.lengths[which] + inside
        return found

    def joined(self, gap_bytes: int) -> "Runs":
        """Return runs that lie near to each other as one, where they ascend. Empty ones are left out."""
        some = self.lengths > 0
        offsets, ends = self.offsets[some], self.ends[some]
        gaps = offsets[1:] - ends[:-1]
        is_first = np.ones(len(offsets), dtype=bool)
        is_first[1:] = (gaps < 0) | (gaps > gap_bytes)
        first = np.flatnonzero(is_first)
        last = np.concatenate((first[1:], [len(offsets)]))[: len(first)] - 1
        return Runs(offsets[first], ends[last] - offsets[first])
