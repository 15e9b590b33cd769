"""What comes over while a session stands still before its freeze, and nobody waits for it. Pure."""

from collections.abc import Sequence

from worldmove.move.measured import Measured
from worldmove.move.terms import Term, size_text

REST_TERM = "rest"
"""The term of what comes over while a session stands still before its freeze."""

REST = 0.35
"""The share of the horizon in which what differs is counted on to come over before the freeze.

The session stands still for half of it, until the next list comes; a quarter of that goes to word of the rows and to
looking for them (75 to 90 of 325 ms, of a large state).
"""

STANDS = 2 * REST
"""The same of the time between a block's end and the next list, where it is known what a block takes that is computed
alone: moves make blocks longer which lie beside them, and so does the horizon say less while they go on."""


def rest_s(measured: Measured) -> float:
    """Return how long a session is counted on to stand still before its freeze, for what differs to come over.

    Where no move has measured it, for that share of the horizon, as after moves for which it was always enough.
    """
    fixed = measured.fixed
    waits_s = min(measured.rate("horizon_s"), measured.still_s)  # where nobody waits, its ends do
    if fixed.num_moves and not fixed.is_rested:
        return fixed.rest_s
    stands_s = 0.0
    if measured.period_s is not None and measured.block_s is not None:
        stands_s = min(measured.still_s, STANDS * max(0.0, measured.period_s - measured.block_s))
    return max(fixed.rest_s, REST * waits_s, stands_s)


def rest(measured: Measured, made: float) -> tuple[Term, ...]:
    """Return what is counted on to come over while a session stands still before its freeze, if anything is."""
    brought_s = min(made / measured.rate("path_rate"), rest_s(measured))
    if brought_s <= 0:
        return ()
    brought = size_text(brought_s * measured.rate("path_rate"))
    return (Term(REST_TERM, brought_s, f"{brought} before the freeze, while nobody waits: else in the pause"),)


def until_due_s(measured: Measured, before: Sequence[Term]) -> float:
    """Return how long a pause may take until somebody waits for the next block.

    Where something is to come over before the freeze, that may wait until the next list comes: half of the horizon
    is over by then. Counted on is less (``REST``), but a session may well stand still for all of it: a pause of 399 ms
    made a block late by 91 that was due in 553 from the end of the one before it (one H200).
    """
    stands_still = any(term.name == REST_TERM for term in before)
    return measured.rate("horizon_s") * (0.5 if stands_still else 1.0)
