"""What a pre-copy costs: two rounds, boundaries at which what differs comes over, and what they leave. Pure."""

from worldmove.move.measured import Measured
from worldmove.move.reckoning.base import Reckoner, never
from worldmove.move.reckoning.difference import NEEDS, before, difference
from worldmove.move.reckoning.settled import settled
from worldmove.move.terms import Reckoning


def _reckon(measured: Measured) -> Reckoning:
    found = settled(measured)
    worst_s = difference(measured, found.at_worst().left).at_s
    return Reckoning(before(measured, found, found.left), difference(measured, found.left), found, worst_s)


PRE_COPY = Reckoner(NEEDS, never, _reckon)
