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
    """When rounds end: what comes over while it rests, before its freeze and a boundary earlier, is made up for."""
    in_pause: int
    """Once it is frozen: what is pulled in the pause."""


def affordable(verdict: Verdict, measured: Measured) -> Affordable | None:
    """Return how much may be left. None: as much as there is, or it is not known."""
    if not verdict.strategy.has_rounds or not verdict.terms or measured.path_rate is None:
        return None
    limit_s = min(measured.still_s, inf if verdict.horizon_s is None else verdict.horizon_s)
    if limit_s == inf:
        return None
    land_s = fsum(term.seconds for term in verdict.terms if term.name == "land") - measured.fixed.land_s
    slack_s = limit_s - verdict.expected_s - measured.fixed.spread_s
    pause_s = max(0.0, land_s) + slack_s
    standing = measured.path_rate * (rest_s(measured) + pause_s)
    if verdict.settled is not None:
        reckoned = verdict.settled.changing if verdict.admitted else 0.0
        standing = max(standing, reckoned, verdict.settled.bearable(standing))
    return Affordable(
        standing=max(0, int(standing)),
        in_pause=max(0, int(measured.path_rate * pause_s)),
    )
