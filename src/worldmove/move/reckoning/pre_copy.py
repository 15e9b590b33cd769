"""What a pre-copy costs: a base, a round, and what they leave. Pure."""

from math import ceil

from worldmove.move.measured import Measured
from worldmove.move.reckoning.base import Reckoner, never
from worldmove.move.reckoning.difference import NEEDS, difference
from worldmove.move.reckoning.rest import rest
from worldmove.move.terms import Reckoning, Term, base, rows, size_text


def _reckon(measured: Measured) -> Reckoning:
    rounds, made = _rounds(measured)
    before = (base(measured), rows(measured), *rounds, *rest(measured, made))
    return Reckoning(before, difference(measured, made))


def _rounds(measured: Measured) -> tuple[tuple[Term, ...], float]:
    """Return the round after the base, if one is made, and what is left for the boundary.

    A round pulls what changes, and leaves the new bytes of the blocks that were played in it; so would any further one.
    It is made where it leaves less than the base did and there is patience for it: a faster path never leaves more.
    """
    changing = measured.rate("dirty_bytes")
    base_s = base(measured).seconds + rows(measured).seconds
    round_s = changing / measured.rate("path_rate") + changing / measured.rate("row_rate")
    left, then = _made_in(measured, base_s), _made_in(measured, round_s)
    if then >= left or base_s + round_s > measured.patience_s:
        return (), left
    return (Term("round", round_s, f"{size_text(changing)} that change from block to block"),), then


def _made_in(measured: Measured, seconds: float) -> float:
    """Return the new bytes of the blocks that are played in a time: those of one at least, all of them at most."""
    num_blocks = max(1.0, seconds / measured.rate("period_s"))
    num_blocks = ceil(num_blocks) if num_blocks < measured.num_bytes else num_blocks
    return min(float(measured.num_bytes), measured.rate("new_bytes") * num_blocks)


PRE_COPY = Reckoner(NEEDS, never, _reckon)
