"""Whether a move can be done before the next block is due: measurements in, a verdict with its terms out. Pure.

    the terms of the pause   <= horizon       (how long until the next block is due, from when it is frozen)
      and their spread       <= still         (how long the ends hold a session that nobody waits for)
    the terms before it      <= patience      (how long a move may prepare)

The terms of each strategy are in ``move/reckoning/``. A measurement that is not there is a reject, which names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from worldmove.move.measured import Measured, unknown
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.reckoning.reckoners import RECKONERS
from worldmove.move.reckoning.rest import REST_TERM, until_due_s
from worldmove.move.reckoning.settled import Settled
from worldmove.move.strategy import Strategy
from worldmove.move.terms import Reckoning, Term, size_text
from worldmove.units import seconds_text

KEPT_THERE = "the snapshot of this session that is kept there, until another worker keeps one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The terms of one strategy, what they have to fit into, and why not (empty: admitted)."""

    strategy: Strategy
    terms: tuple[Term, ...] = ()
    """Of the pause. None where it is not known what they are."""
    expected_s: float = 0.0
    """The expected pause: the sum of its terms."""
    before: tuple[Term, ...] = ()
    """Of what comes before it, played on."""
    settled: Settled | None = None
    """What differs before the pause, of a strategy that pulls in rounds."""
    spread_s: float = 0.0
    """By how much a pause like this may well take longer than is expected: as much has to fit into the horizon, too."""
    horizon_s: float | None = None
    reason: str = ""
    detail: str = ""

    @property
    def admitted(self) -> bool:
        return not self.reason

    @property
    def before_s(self) -> float:
        """How long the session is expected to be played on before its pause."""
        return _sum(self.before)

    @property
    def at_risk_s(self) -> float:
        """By how much the pause would be longer, had its session no time to rest before the freeze."""
        return _sum([term for term in self.before if term.name == REST_TERM])

    @property
    def slack_s(self) -> float | None:
        """What is left of the horizon; below zero, what is missing. None where it is not known."""
        return None if self.horizon_s is None or not self.terms else self.horizon_s - self.expected_s - self.spread_s


def admit(measured: Measured, strategy: Strategy = Strategy.BOUNDARY_COPY) -> Verdict:
    """Compare what stands in the way, then what is expected with patience and horizon."""
    reason, detail = _in_the_way(measured)
    lacking = () if reason else unknown(measured, RECKONERS[strategy].needs)
    if lacking:
        reason, detail = "not_measured", f"not measured yet: {', '.join(lacking)}"
    if reason:
        return Verdict(strategy=strategy, horizon_s=measured.horizon_s, reason=reason, detail=detail)
    forbidden = RECKONERS[strategy].forbidden(measured)
    if forbidden is not None:
        return Verdict(
            strategy=strategy,
            horizon_s=measured.horizon_s,
            before=forbidden.before,
            reason=forbidden.reason,
            detail=forbidden.detail,
        )
    return _compared(measured, strategy)


def _compared(measured: Measured, strategy: Strategy) -> Verdict:
    reckoning = RECKONERS[strategy].reckon(measured)
    expected_s, before_s = reckoning.way.at_s, _sum(reckoning.before)
    reason, detail = "", ""
    # What one in ten takes longer, and what a move does whose rounds begin at another moment of a block.
    spread_s = measured.fixed.spread_s + max(0.0, reckoning.worst_s - expected_s)
    horizon_s = until_due_s(measured, reckoning.before)
    if expected_s + spread_s > min(horizon_s, measured.still_s):
        reason, detail = "too_slow", _too_slow(measured, reckoning)
    elif max(before_s, _needed_s(reckoning)) > measured.patience_s:
        reason = "too_long"
        detail = (
            f"it is expected to prepare for {seconds_text(max(before_s, _needed_s(reckoning)))}, and a move may for "
            f"{seconds_text(measured.patience_s)}; {_largest(reckoning.before)}"
        )
    return Verdict(
        strategy=strategy,
        terms=reckoning.way.terms,
        expected_s=expected_s,
        before=reckoning.before,
        settled=reckoning.settled,
        spread_s=spread_s,
        horizon_s=horizon_s,
        reason=reason,
        detail=detail,
    )


def _needed_s(reckoning: Reckoning) -> float:
    """Return what there has to be for rounds: none is begun that would take of what is kept for the boundary."""
    return 0.0 if reckoning.settled is None else reckoning.settled.rounds_s + PrecopyConfig().reserve_s


def _in_the_way(measured: Measured) -> tuple[str, str]:
    """Return what forbids the move whatever its strategy: a word and a sentence, or two empty texts."""
    if measured.same_worker:
        return "same_worker", "it is there already"
    if not measured.ledger_healthy:
        return "ledger", "the ledger does not answer, and no move starts meanwhile"
    if measured.environment_differs:
        return "environment", "; ".join(measured.environment_differs)
    if measured.num_slots_free == 0:
        kept = f", one of them by {KEPT_THERE}" if measured.is_kept_there else ""
        return "no_slot", f"all places there are taken{kept}"
    return "", ""


def _too_slow(measured: Measured, reckoning: Reckoning) -> str:
    expected_s, horizon_s = reckoning.way.at_s, until_due_s(measured, reckoning.before)
    limit = f"the next block is due in {seconds_text(horizon_s)}"
    if measured.still_s < horizon_s:
        limit = f"no session is held still for longer than {seconds_text(measured.still_s)}"
    took = f"moving {size_text(measured.num_bytes)} is expected to take {seconds_text(expected_s)}"
    if measured.fixed.spread_s > 0:
        took += f", one in ten {seconds_text(measured.fixed.spread_s)} more"
    if reckoning.worst_s > expected_s:
        took += f", up to {seconds_text(reckoning.worst_s - expected_s)} more by when in a block its rounds begin"
    return f"{took}, and {limit}; {_largest(reckoning.way.terms)}"


def _largest(terms: Sequence[Term]) -> str:
    largest = max(terms, key=lambda term: term.seconds)
    return f"the largest part is {largest.name}, {seconds_text(largest.seconds)}"


def _sum(terms: Sequence[Term]) -> float:
    # Python's own sum of floats is rounded in another way from 3.12 on.
    return fsum(term.seconds for term in terms)
