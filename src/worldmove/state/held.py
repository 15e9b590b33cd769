"""Rows that are held, asked for by their content: eight bytes of digest, and the length. Pure.

Where a row lay before says nothing. What of some rows is held, and where, comes back as runs: rows that lie side by
side at both ends are one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from worldmove.state.row_digests import Bytes, Digests, row_digests
from worldmove.state.rows import Numbers, Rows
from worldmove.state.runs import Runs

Mask = NDArray[np.bool_]
Hints = Callable[[], Numbers]
"""Where each row is looked for first, as offsets, or -1. Asked only by whom it saves something."""


MOST_STEPS = 32
"""From where a digest's highest bits say that it stands. Whoever makes up a world can have all stand in one place."""

_NO_BYTES: Bytes = np.empty(0, dtype=np.uint8)


class Moved(NamedTuple):
    """Runs that are held in another place; destinations ascend and are disjoint."""

    sources: Numbers
    destinations: Numbers
    lengths: Numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What of some rows is held."""

    in_place_bytes: int
    elsewhere: Moved
    nowhere: Runs
    are_apart: bool = False
    """Whether none that is elsewhere is read from where another one is wanted, as far as that was looked at."""


def everything_in_place(wanted: Rows) -> Found:
    """Return that of rows that are where they are wanted."""
    none: Numbers = np.empty(0, dtype=np.int64)
    return Found(in_place_bytes=wanted.num_bytes, elsewhere=Moved(none, none, none), nowhere=Runs(none, none))


class Holding(Protocol):
    """Rows of an arena, and what they hold, in whichever kind of memory that is looked up."""

    @property
    def rows(self) -> Rows: ...

    @property
    def digests(self) -> Digests:
        """In the order of the rows."""
        ...

    def look_again(self, which: Numbers) -> None:
        """Other content has come into some rows: it is found in place, and what was there before nowhere any more.

        Not for the event loop's thread.
        """
        ...

    def lacks(self, digests: Digests) -> Mask:
        """Say which digests no row of it has."""
        ...

    def unlike(self, digests: Digests) -> Numbers:
        """Return the numbers of its rows that hold something else, ascending. Not for the event loop's thread."""
        ...

    def look_for(
        self, wanted: Rows, digests: Digests, came_from: Hints | None = None, which: Numbers | None = None
    ) -> Found:
        """Say what of some rows is in place, elsewhere and nowhere. Not for the event loop's thread.

        ``which``: the only ones that may not be in place, where the rows are its own. None: any.
        """
        ...


class Held:
    """Rows of host memory, ready to be asked for. Made before the boundary: it sorts."""

    def __init__(self, rows: Rows, digests: Digests, memory: Bytes = _NO_BYTES) -> None:
        """``memory``: where they lie, to be looked at again."""
        if len(rows) != len(digests):
            raise ValueError(f"{len(digests)} digests of {len(rows)} rows")
        self._rows = rows
        self._digests = digests
        self._memory = memory
        self._order = np.argsort(digests, kind="stable")
        ascending = digests[self._order]
        first = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))[: len(digests)]
        self._distinct = ascending[first]
        self._first = first
        self._count = np.diff(np.concatenate((first, [len(digests)])))
        # Digests are spread evenly, so their highest bits say almost where they stand.
        self._shift = np.uint64(64 - max(1, len(first).bit_length()))
        buckets = np.arange((1 << (64 - int(self._shift))) + 1, dtype=np.uint64)
        self._bucket = np.searchsorted(self._distinct >> self._shift, buckets)

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def digests(self) -> Digests:
        return self._digests

    def look_again(self, which: Numbers) -> None:
        """Other content has come into some rows: it is found in place, and what was there before nowhere any more."""
        self._digests[which] = row_digests(self._memory, self._rows.some(which))

    def lacks(self, digests: Digests) -> Mask:
        """Say which digests no row of it has."""
        return self.find(digests) < 0

    def unlike(self, digests: Digests) -> Numbers:
        """Return the numbers of its rows that hold something else, ascending."""
        return np.flatnonzero(self._digests != digests)

    def look_for(
        self, wanted: Rows, digests: Digests, came_from: Hints | None = None, which: Numbers | None = None
    ) -> Found:
        """Say what of some rows is in place, elsewhere and nowhere. ``came_from`` is looked at before all others."""
        if which is not None:
            return self._look_for_some(wanted, digests, which)
        there = self.at_offsets(wanted.offsets)
        in_place = (there >= 0) & self._is(there, wanted, digests)
        open_ = np.flatnonzero(~in_place)
        source = np.full(len(wanted), -1, dtype=np.int64)
        if came_from is not None:
            source[open_] = self.at_offsets(came_from()[open_])
            source[~((source >= 0) & self._is(source, wanted, digests))] = -1
            open_ = open_[source[open_] < 0]
        source[open_] = self.find(digests[open_])
        movable = (source >= 0) & self._is(source, wanted, digests)
        rows = np.flatnonzero(movable)
        missing = np.flatnonzero(~(in_place | movable))
        at = wanted.offsets[missing]
        return Found(
            in_place_bytes=int(wanted.lengths[in_place].sum()),
            elsewhere=_joined(self.rows.offsets[source[rows]], wanted.offsets[rows], wanted.lengths[rows]),
            nowhere=Runs(*_joined(at, at, wanted.lengths[missing])[1:]),
        )

    def _look_for_some(self, wanted: Rows, digests: Digests, which: Numbers) -> Found:
        """Look for those alone: all others are in place."""
        if not len(which):
            return everything_in_place(wanted)
        found = self.look_for(wanted.some(which), digests[which])
        return replace(
            found, in_place_bytes=wanted.num_bytes - int(found.elsewhere.lengths.sum()) - found.nowhere.num_bytes
        )

    def find(self, wanted: Digests) -> Numbers:
        """Return for each digest a held row that has it, or -1.

        Of what has come since it was made none is found, and what is gone may be: compare. Where several have it, equal
        ones that are wanted take them in turn: so equal rows that lie side by side are found side by side.
        """
        place = self._places(wanted)
        found = np.full(len(wanted), -1, dtype=np.int64)
        some = np.flatnonzero(place >= 0)
        turn = np.zeros(len(some), dtype=np.int64)
        counts = self._count[place[some]]
        often = np.flatnonzero(counts > 1)
        if len(often):
            turn[often] = _ranks(place[some][often]) % counts[often]
        found[some] = self._order[self._first[place[some]] + turn]
        return found

    def at_offsets(self, offsets: Numbers) -> Numbers:
        """Return for each offset the held row that begins there, or -1."""
        if offsets is self.rows.offsets:
            return np.arange(len(offsets))
        if not len(self.rows):
            return np.full(len(offsets), -1, dtype=np.int64)
        place = np.searchsorted(self.rows.offsets, offsets)
        place[place == len(self.rows)] = 0
        return np.where(self.rows.offsets[place] == offsets, place, -1)

    def _places(self, wanted: Digests) -> Numbers:
        """Return where each digest stands among the distinct ones, or -1."""
        found = np.full(len(wanted), -1, dtype=np.int64)
        bucket = (wanted >> self._shift).astype(np.int64)
        at, end = self._bucket[bucket], self._bucket[bucket + 1]
        asked = np.arange(len(wanted))
        for _ in range(MOST_STEPS):
            open_ = at < end
            asked, at, end = asked[open_], at[open_], end[open_]
            if not len(asked):
                return found
            hit = self._distinct[at] == wanted[asked]
            found[asked[hit]] = at[hit]
            asked, at, end = asked[~hit], at[~hit] + 1, end[~hit]
        at = np.minimum(np.searchsorted(self._distinct, wanted[asked]), len(self._distinct) - 1)
        hit = self._distinct[at] == wanted[asked]
        found[asked[hit]] = at[hit]
        return found

    def _is(self, which: Numbers, wanted: Rows, digests: Digests) -> Mask:
        if not len(self.rows):
            return np.zeros(len(wanted), dtype=bool)
        same: Mask = (self.digests[which] == digests) & (self.rows.lengths[which] == wanted.lengths)
        return same


def _ranks(values: Numbers) -> Numbers:
    """Return the how-manieth of its value each is."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    first = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values)) - np.repeat(first, np.diff(np.concatenate((first, [len(values)]))))
    return ranks


def _joined(sources: Numbers, destinations: Numbers, lengths: Numbers) -> Moved:
    """Join rows that lie side by side at both ends."""
    if not len(sources):
        return Moved(sources, destinations, lengths)
    together = (sources[1:] == sources[:-1] + lengths[:-1]) & (destinations[1:] == destinations[:-1] + lengths[:-1])
    first = np.flatnonzero(np.concatenate(([True], ~together)))
    return Moved(sources[first], destinations[first], np.add.reduceat(lengths, first))
