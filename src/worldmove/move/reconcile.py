"""What of a frozen state its destination holds already, in whichever place. Pure.

Rules of this file:

1. A row is known by its content alone: eight bytes of digest, and its length. Where it lay before says nothing.
2. A wanted row is in place, or held elsewhere (it is moved), or nowhere (it is pulled). Nothing is pulled before every
   move is done: pulls write where moves read.
3. No byte is overwritten before it is read. Moves stand in waves; those of one wave may be done at once, but for one
   that overlaps itself: it is one ``memmove``. What waits for itself in a circle goes through a spare.
4. What cannot be ordered cheaply is pulled: that is always right.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from worldmove.state.extent import Extent
from worldmove.state.row_digests import Digests
from worldmove.state.row_moves import Moves
from worldmove.state.rows import Numbers, Rows

MAX_WAVES = 32
"""Deeper chains are done one by one. A rolled cache needs one wave."""
MAX_SPARE_BYTES = 64 << 20

Mask = NDArray[np.bool_]
_Runs = tuple[Numbers, Numbers, Numbers]
"""Sources, destinations, lengths."""

_NOTHING: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """How what is held becomes what is wanted: first the moves, then the pulls. Bytes of each, together all of it."""

    moves: Moves
    pulls: tuple[Extent, ...]
    in_place_bytes: int
    moved_bytes: int
    pulled_bytes: int


class Held:
    """What a destination holds, ready to be asked for. Made before the boundary: it sorts."""

    def __init__(self, rows: Rows, digests: Digests) -> None:
        if len(rows) != len(digests):
            raise ValueError(f"{len(digests)} digests of {len(rows)} rows")
        self.rows = rows
        self.digests = digests
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

    def renew(self, which: Numbers, digests: Digests) -> None:
        """Other content has come into some rows: it is found in place, and what was there before nowhere any more."""
        self.digests[which] = digests

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
        while True:
            open_ = at < end
            asked, at, end = asked[open_], at[open_], end[open_]
            if not len(asked):
                return found
            hit = self._distinct[at] == wanted[asked]
            found[asked[hit]] = at[hit]
            asked, at, end = asked[~hit], at[~hit] + 1, end[~hit]


def reconcile(
    held: Held,
    wanted: Rows,
    digests: Digests,
    spare_at: int,
    *,
    max_spare_bytes: int = MAX_SPARE_BYTES,
    came_from: Numbers | None = None,
) -> Difference:
    """Compare what is held with what is wanted. ``spare_at``: an offset after every byte of the arena.

    ``came_from``: where a row is looked for first, or -1.
    """
    if len(wanted) != len(digests):
        raise ValueError(f"{len(digests)} digests of {len(wanted)} rows")
    there = held.at_offsets(wanted.offsets)
    in_place = (there >= 0) & _is(held, there, wanted, digests)
    open_ = np.flatnonzero(~in_place)
    source = np.full(len(wanted), -1, dtype=np.int64)
    if came_from is not None:
        source[open_] = held.at_offsets(came_from[open_])
        source[~((source >= 0) & _is(held, source, wanted, digests))] = -1
        open_ = open_[source[open_] < 0]
    source[open_] = held.find(digests[open_])
    movable = (source >= 0) & _is(held, source, wanted, digests)
    rows = np.flatnonzero(movable)
    runs, run_of = _runs(held.rows.offsets[source[rows]], wanted.offsets[rows], wanted.lengths[rows])
    moves, dropped = _ordered(runs, spare_at, max_spare_bytes)
    movable[rows[np.isin(run_of, dropped)]] = False
    pulled = ~(in_place | movable)
    return Difference(
        moves=moves,
        pulls=wanted.extents(pulled),
        in_place_bytes=int(wanted.lengths[in_place].sum()),
        moved_bytes=int(wanted.lengths[movable].sum()),
        pulled_bytes=int(wanted.lengths[pulled].sum()),
    )


def _is(held: Held, which: Numbers, wanted: Rows, digests: Digests) -> Mask:
    if not len(held.rows):
        return np.zeros(len(wanted), dtype=bool)
    same: Mask = (held.digests[which] == digests) & (held.rows.lengths[which] == wanted.lengths)
    return same


def _ranks(values: Numbers) -> Numbers:
    """Return the how-manieth of its value each is."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    first = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values)) - np.repeat(first, np.diff(np.concatenate((first, [len(values)]))))
    return ranks


def _runs(sources: Numbers, destinations: Numbers, lengths: Numbers) -> tuple[_Runs, Numbers]:
    """Join moves of rows that lie side by side at both ends. Return the runs, and in which one each row is."""
    if not len(sources):
        return (_NOTHING, _NOTHING, _NOTHING), _NOTHING
    together = (sources[1:] == sources[:-1] + lengths[:-1]) & (destinations[1:] == destinations[:-1] + lengths[:-1])
    begins = np.concatenate(([True], ~together))
    first = np.flatnonzero(begins)
    return (sources[first], destinations[first], np.add.reduceat(lengths, first)), np.cumsum(begins) - 1


def _ordered(runs: _Runs, spare_at: int, max_spare_bytes: int) -> tuple[Moves, Numbers]:
    """Order runs whose destinations ascend and are disjoint. Return the moves, and which runs are none after all."""
    sources, destinations, lengths = runs
    num = len(sources)
    # The runs whose destinations a run reads from, itself perhaps included: lowest, and first one above.
    lowest = np.searchsorted(destinations + lengths, sources, side="right")
    above = np.searchsorted(destinations, sources + lengths, side="left")
    own = np.arange(num)
    reads_own = (lowest <= own) & (own < above)
    left = np.ones(num, dtype=bool)
    order: list[Numbers] = []
    while len(order) < MAX_WAVES and left.any():
        reads = np.bincount(lowest[left], minlength=num + 1) - np.bincount(above[left], minlength=num + 1)
        ready = left & (np.cumsum(reads[:num]) == (left & reads_own))
        if not ready.any():
            break
        order.append(np.flatnonzero(ready))
        left &= ~ready
    tail, saved, dropped = _tail(lowest, above, lengths, np.flatnonzero(left), max_spare_bytes)
    spared = spare_at + np.cumsum(lengths[saved]) - lengths[saved]
    from_ = sources.copy()
    from_[saved] = spared
    firsts = np.concatenate([_NOTHING, *order])
    waves = np.repeat(np.arange(len(order)), [len(wave) for wave in order])
    return Moves(
        sources=np.concatenate((sources[firsts], sources[saved], from_[tail])),
        destinations=np.concatenate((destinations[firsts], spared, destinations[tail])),
        lengths=np.concatenate((lengths[firsts], lengths[saved], lengths[tail])),
        waves=np.concatenate((waves, np.full(len(saved), len(order)), len(order) + 1 + np.arange(len(tail)))),
        spare_at=spare_at,
        spare_bytes=int(lengths[saved].sum()),
    ), dropped


def _tail(
    lowest: Numbers, above: Numbers, lengths: Numbers, left: Numbers, max_spare_bytes: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Order what waits for itself, by destination, upwards or downwards: whichever has less to be saved before.

    Return the order, what is saved first, and what does not fit the spare.
    """
    choices: list[tuple[int, Numbers, Numbers]] = []
    num_below = np.zeros(len(lengths) + 1, dtype=np.int64)
    num_below[left + 1] = 1
    num_below = np.cumsum(num_below)
    low, high = lowest[left], above[left]
    upwards = num_below[np.minimum(high, left)] > num_below[np.minimum(low, left)]
    downwards = num_below[np.maximum(high, left + 1)] > num_below[np.maximum(low, left + 1)]
    for order, early in ((left, upwards), (left[::-1], downwards)):
        saved = left[early]
        choices.append((int(lengths[saved].sum()), order, saved))
    _, order, saved = min(choices, key=lambda choice: choice[0])
    fits = np.cumsum(lengths[saved]) <= max_spare_bytes
    dropped = saved[~fits]
    return order[~np.isin(order, dropped)], saved[fits], dropped
