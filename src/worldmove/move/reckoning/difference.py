"""A pause in which the destination finds what it holds, and pulls what differs: a pre-copy's, and a stream's. Pure."""

from worldmove.move.measured import Measured
from worldmove.move.reckoning.base import HASHES
from worldmove.move.reckoning.rest import rest, rest_s
from worldmove.move.reckoning.settled import Settled, round_s
from worldmove.move.terms import Term, Way, arrive, base, commit, freeze, growth, rows, size_text

NEEDS = ("path_rate", *HASHES, "row_rate", "copy_rate", "dirty_bytes", "new_bytes", "period_s")
"""What has to be measured for it."""


FIRST, SECOND = 0.5, 2.25
"""Periods from the word that it is ready until the session stands still to be frozen.

Until the next boundary, where all comes over there; else until one that is one or two blocks later, by when in a block
the word came: 2.0, 2.5 and 2.4 (one H200).
"""


def before(
    measured: Measured, found: Settled, made: float, *, followed: float = 0.0, beside: tuple[Term, ...] = ()
) -> tuple[Term, ...]:
    """Return the terms before the freeze. ``beside``: of what is done there meanwhile."""
    again = Term("round", round_s(measured, followed), "all of it again: one round does not show what changes")
    comes_at_once = found.differs <= measured.rate("path_rate") * rest_s(measured)
    settle_s = (FIRST if comes_at_once else SECOND) * measured.rate("period_s")
    settle = Term("settle", settle_s, f"until a boundary; {size_text(found.differs)} may differ at the first one")
    return (base(measured), rows(measured), again, *beside, settle, *rest(measured, made))


def difference(measured: Measured, made: float) -> Way:
    """Return the way through a pause in which the destination finds what it holds.

    ``made``: what it cannot hold before the session stands still.
    """
    way, fixed, larger = Way(), measured.fixed, growth(measured)
    freeze(way, measured)
    digested = rows(measured)
    way.take(digested.name, digested.seconds, digested.how)
    way.take("boundary", fixed.boundary_s * larger, "its way, with the digests of rows that have changed")
    left = _left(measured, made)
    if fixed.reconcile_s is not None:
        way.take("reconcile", fixed.reconcile_s * larger, "every row looked for")
    elif left > 0:
        way.take("reconcile", digested.seconds, "every row looked for; as long as digesting them, to start with")
    else:
        way.take("reconcile", 0.0, "nothing to be looked for: all of it came before")
    # What lies elsewhere is moved before anything is pulled: at rest, where there is any.
    moved = 0.0 if rest_s(measured) > 0 else max(0.0, measured.rate("dirty_bytes") - measured.rate("new_bytes"))
    move_rate = measured.move_rate or measured.rate("copy_rate")
    way.take("moves", moved / move_rate, f"{size_text(moved)} that lie elsewhere over there")
    arrive(way, measured, way.at_s, left)
    commit(way, measured)
    return way


def _left(measured: Measured, made: float) -> float:
    """Return what is pulled in the pause: while the session stands still before it, some of it comes over.

    As much as was left of earlier moves over this path, where there were any; no less than was left of any, however
    long that was. Where it was always long enough, the freeze has waited for it, and waits longer for a slower path:
    counted on is a share of the time until somebody waits.
    """
    if measured.fixed.is_left_known:
        return min(float(measured.num_bytes), measured.fixed.left_bytes * growth(measured))
    rested = made - measured.rate("path_rate") * rest_s(measured)
    return min(float(measured.num_bytes), max(rested, measured.fixed.left_bytes * growth(measured)))
