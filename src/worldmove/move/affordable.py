"""What a destination that pulls in rounds may leave for the end: as much as can still come over in time. Pure."""

from math import fsum, inf

from worldmove.move.admission import Verdict
from worldmove.move.measured import Measured
from worldmove.move.reckoning import rest_s


def affordable_bytes(verdict: Verdict, measured: Measured) -> int | None:
    """Return how many bytes may differ once a session stands still. None: as many as there are, or it is not known.

    They travel while it rests before its freeze, and in the pause for as long as its other terms leave.
    """
    if not verdict.strategy.has_rounds or not verdict.terms or measured.path_rate is None:
        return None
    limit_s = min(measured.still_s, inf if measured.horizon_s is None else measured.horizon_s)
    if limit_s == inf:
        return None
    land_s = fsum(term.seconds for term in verdict.terms if term.name == "land") - measured.fixed.land_s
    slack_s = limit_s - verdict.expected_s - verdict.spread_s
    return max(0, int(measured.path_rate * (rest_s(measured) + max(0.0, land_s) + slack_s)))
