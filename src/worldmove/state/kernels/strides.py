"""Pieces at equal steps told as one: thousands of lines of one cache are one line of a table."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Strided(NamedTuple):
    """``counts`` pieces of ``lengths`` bytes each, from ``sources`` to ``targets``, and so many bytes apart there."""

    sources: Numbers
    targets: Numbers
    lengths: Numbers
    counts: Numbers
    source_steps: Numbers
    target_steps: Numbers
    first: Numbers
    """The number of the first piece of each."""


def strided(sources: Numbers, targets: Numbers, lengths: Numbers) -> Strided:
    """Join pieces that follow each other, as long as length and steps stay the same. Order and number are kept."""
    if not len(lengths):
        return Strided(*(np.empty(0, dtype=np.int64),) * 7)
    steps = np.diff(sources), np.diff(targets)
    first = np.flatnonzero(_begins(steps, lengths))
    counts = np.diff(np.concatenate((first, [len(lengths)])))
    found = [np.zeros(len(first), dtype=np.int64) for _ in steps]
    many = counts > 1
    for into, step in zip(found, steps, strict=True):
        into[many] = step[first[many]]
    return Strided(sources[first], targets[first], lengths[first], counts, found[0], found[1], first)


def _begins(steps: tuple[Numbers, Numbers], lengths: Numbers) -> NDArray[np.bool_]:
    """Say of each piece whether a line begins with it."""
    # Another length always begins a line. Another step does not where the piece before has just begun one: any two
    # pieces of one length are a line. So of changes of step that follow each other, every second one begins a line.
    other_length = np.ones(len(lengths), dtype=bool)
    other_length[1:] = lengths[1:] != lengths[:-1]
    goes_on = np.zeros(len(lengths), dtype=bool)
    goes_on[2:] = ~other_length[2:] & ~other_length[1:-1]
    for step in steps:
        goes_on[2:] &= step[1:] == step[:-1]
    other_step = ~other_length & ~goes_on
    number = np.arange(len(lengths))
    before = np.maximum.accumulate(np.where(other_step, 0, number))
    has_turn = ((number - before) % 2 == 1) ^ other_length[before]
    found: NDArray[np.bool_] = other_length | (other_step & has_turn)
    return found
