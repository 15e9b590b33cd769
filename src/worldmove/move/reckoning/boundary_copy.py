"""What a boundary copy costs: the whole state, in the pause. Pure."""

from worldmove.move.measured import Measured
from worldmove.move.reckoning.base import HASHES, Reckoner, never
from worldmove.move.terms import Reckoning, Way, arrive, commit, freeze


def _reckon(measured: Measured) -> Reckoning:
    way, known_s = Way(), max(0.0, measured.fixed.freeze_s + measured.fixed.boundary_s)
    freeze(way, measured)
    way.until("boundary", known_s, "its way to the destination")
    arrive(way, measured, known_s, measured.num_bytes)
    commit(way, measured)
    return Reckoning((), way)


BOUNDARY_COPY = Reckoner(("path_rate", *HASHES), never, _reckon)
