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

from worldmove.state.geometry import merge
from worldmove.state.held import Hints, Holding, Moved
from worldmove.state.row_digests import Digests
from worldmove.state.row_moves import Moves
from worldmove.state.rows import Numbers, Rows
from worldmove.state.runs import Runs

MAX_WAVES = 32
"""Deeper chains are done one by one. A rolled cache needs one wave."""
MAX_SPARE_BYTES = 64 << 20

_NOTHING: Numbers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference:
    """How what is held becomes what is wanted: first the moves, then the pulls. Bytes of each, together all of it."""

    moves: Moves
    pulls: Runs
    in_place_bytes: int
    moved_bytes: int
    pulled_bytes: int


def nothing(in_place_bytes: int) -> Difference:
    """Return how what is held becomes the same: by nothing."""
    moves = Moves(sources=_NOTHING, destinations=_NOTHING, lengths=_NOTHING, waves=_NOTHING, spare_at=0)
    return Difference(
        moves=moves,
        pulls=Runs(_NOTHING, _NOTHING),
        in_place_bytes=in_place_bytes,
        moved_bytes=0,
        pulled_bytes=0,
    )


def reconcile(
    held: Holding,
    wanted: Rows,
    digests: Digests,
    spare_at: int,
    *,
    max_spare_bytes: int = MAX_SPARE_BYTES,
    came_from: Hints | None = None,
    which: Numbers | None = None,
) -> Difference:
    """Compare what is held with what is wanted. ``spare_at``: an offset after every byte of the arena.

    ``came_from``: where a row is looked for first. ``which``: the rows, of those that are held, that may not be in
    place; None: any.
    """
    if len(wanted) != len(digests):
        raise ValueError(f"{len(digests)} digests of {len(wanted)} rows")
    found = held.look_for(wanted, digests, came_from, which)
    if found.are_apart:
        moves, dropped = at_once(found.elsewhere, spare_at), _NOTHING
    else:
        moves, dropped = ordered(found.elsewhere, spare_at, max_spare_bytes)
    pulls, moved = found.nowhere, found.elsewhere
    if len(dropped):
        runs = [np.stack((each.offsets, each.ends), axis=1) for each in (pulls, _at(moved, dropped))]
        begins, ends = merge(runs).T
        pulls = Runs(begins, ends - begins)
    return Difference(
        moves=moves,
        pulls=pulls,
        in_place_bytes=found.in_place_bytes,
        moved_bytes=int(moved.lengths.sum() - moved.lengths[dropped].sum()),
        pulled_bytes=pulls.num_bytes,
    )


def _at(moved: Moved, which: Numbers) -> Runs:
    return Runs(moved.destinations[which], moved.lengths[which])


def at_once(runs: Moved, spare_at: int) -> Moves:
    """Return the moves of runs of which none reads what another one writes: in any order."""
    sources, destinations, lengths = runs
    waves = np.zeros(len(sources), dtype=np.int64)
    return Moves(sources=sources, destinations=destinations, lengths=lengths, waves=waves, spare_at=spare_at)


def ordered(runs: Moved, spare_at: int, max_spare_bytes: int) -> tuple[Moves, Numbers]:
    """Order runs whose destinations ascend and are disjoint. Return the moves, and which runs are none after all."""
    sources, destinations, lengths = runs
    num = len(sources)
    # The runs whose destinations a run reads from, itself perhaps included: lowest, and first one above.
    lowest = np.searchsorted(destinations + lengths, sources, side="right")
    above = np.searchsorted(destinations, sources + lengths, side="left")
    own = np.arange(num)
    reads_own = (lowest <= own) & (own < above)
    if (above - lowest == reads_own).all():  # nobody reads what another one writes: so it is with caches that roll
        return at_once(runs, spare_at), _NOTHING
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
