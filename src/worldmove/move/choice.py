"""Which strategy a move gets: of those that are admitted the one with the least pause. Pure.

Rounds and replay cost the two workers time for their other worlds, so what a strategy saves has to be worth it: of
those whose pauses are nearly equal, the first in the order of ``Strategy`` is taken. Nearly equal is none that counts
on much coming over while its session rests: where the rest is cut short, that comes in the pause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worldmove.move.admission import Verdict, admit
from worldmove.move.measured import Measured
from worldmove.move.strategy import WIRED, Strategy

NEAR_S = 0.010
"""Two pauses that differ by no more are nearly equal: a quarter of a frame at 25 a second."""
NEAR_SHARE = 0.1
"""And so are two that differ by this share of the shorter one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Every verdict, and the one that the move goes by: an admitted one, or the best reason why there is none."""

    verdict: Verdict
    verdicts: tuple[Verdict, ...]
    """One for each strategy that there is, in their order."""

    @property
    def strategy(self) -> Strategy:
        return self.verdict.strategy

    def of(self, strategy: Strategy) -> Verdict:
        """Return a strategy's verdict."""
        return next(verdict for verdict in self.verdicts if verdict.strategy is strategy)


def choose(
    measured: Mapping[Strategy, Measured], wanted: Strategy | None = None, offered: Sequence[Strategy] = WIRED
) -> Choice:
    """Weigh the strategies that are offered, or judge the wanted one alone. What is measured is given for each."""
    verdicts = tuple(admit(measured[strategy], strategy) for strategy in Strategy if strategy in offered)
    if wanted is not None:
        return Choice(verdict=admit(measured[wanted], wanted), verdicts=verdicts)
    admitted = [verdict for verdict in verdicts if verdict.admitted]
    return Choice(verdict=_best(admitted) if admitted else _nearest(verdicts), verdicts=verdicts)


def _best(admitted: Sequence[Verdict]) -> Verdict:
    """Return the first whose pause is nearly the least, and would be with less of a rest before it, too."""
    least = min(admitted, key=lambda verdict: verdict.expected_s)
    near_s = max(NEAR_S, NEAR_SHARE * least.expected_s)
    near = [verdict for verdict in admitted if verdict.expected_s <= least.expected_s + near_s]
    return next((verdict for verdict in near if verdict.at_risk_s <= near_s), least)


def _nearest(rejected: Sequence[Verdict]) -> Verdict:
    """Return the one whose pause is the least too long; where none is known, the first."""
    known = [verdict for verdict in rejected if verdict.terms]
    return min(known, key=lambda verdict: verdict.expected_s, default=rejected[0])
