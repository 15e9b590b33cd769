"""What a destination that pulls in rounds may leave for the end: as much as can still come over in time. Pure."""

from dataclasses import dataclass
from math import fsum, inf

from worldmove.move.admission import Verdict
from worldmove.move.measured import Measured
from worldmove.move.reckoning.rest import rest_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Affordable:
    """How many bytes may differ."""

    standing: int
    """Once a session stands still: some of them come over while it rests before its freeze."""
    in_pause: int
    """Once it is frozen: what is pulled in the pause."""


def affordable(verdict: Verdict, measured: Measured) -> Affordable | None:
    """Return how much may be left. None: as much as there is, or it is not known."""
    if not verdict.strategy.has_rounds or not verdict.terms or measured.path_rate is None:
        return None
    limit_s = min(measured.still_s, inf if measured.horizon_s is None else measured.horizon_s)
    if limit_s == inf:
        return None
    land_s = fsum(term.seconds for term in verdict.terms if term.name == "land") - measured.fixed.land_s
    slack_s = limit_s - verdict.expected_s - verdict.spread_s
    pause_s = max(0.0, land_s) + slack_s
    return Affordable(
        standing=max(0, int(measured.path_rate * (rest_s(measured) + pause_s))),
        in_pause=max(0, int(measured.path_rate * pause_s)),
    )
