"""What a move is expected to be, as a body of HTTP answers. Pure. Times in ms; what is endless or unknown is null."""

from collections.abc import Sequence
from math import isfinite

from worldmove.fleet.forecast import Forecast
from worldmove.fleet.reports import Expectation
from worldmove.move.admission import Verdict
from worldmove.move.measured import WORDS, Measured
from worldmove.move.terms import Term
from worldmove.serve import http_models as body


def plan_body(forecast: Forecast) -> body.Plan:
    """Return a forecast, with every term of every strategy and what would admit those that are rejected."""
    chosen = forecast.choice.verdict
    measured = forecast.measured[chosen.strategy]
    return body.Plan(
        session=forecast.session,
        source=forecast.source,
        to=forecast.destination,
        transport=forecast.transport,
        num_bytes=measured.num_bytes,
        horizon_ms=_ms(measured.horizon_s),
        waited_for=measured.horizon_s is None or isfinite(measured.horizon_s),
        strategy=chosen.strategy.value,
        admitted=chosen.admitted,
        strategies=[_strategy_body(forecast, verdict) for verdict in forecast.choice.verdicts],
        measured=_measured_body(measured),
    )


def expectation_body(expected: Expectation) -> body.Expectation:
    """Return what a report says was expected."""
    return body.Expectation(
        strategy=expected.strategy,
        pause_ms=round(expected.pause_s * 1000, 3),
        before_ms=round(expected.before_s * 1000, 3),
        terms={name: round(seconds * 1000, 3) for name, seconds in expected.terms},
    )


def _strategy_body(forecast: Forecast, verdict: Verdict) -> body.StrategyPlan:
    remedy = None if verdict.admitted else forecast.remedy(verdict.strategy)
    return body.StrategyPlan(
        strategy=verdict.strategy.value,
        admitted=verdict.admitted,
        reason=verdict.reason,
        detail=verdict.detail,
        remedy="" if remedy is None else remedy.sentence,
        pause_ms=_ms(verdict.expected_s) if verdict.terms else None,
        before_ms=_ms(verdict.before_s) if verdict.terms else None,
        spread_ms=round(verdict.spread_s * 1000, 3),
        slack_ms=_ms(verdict.slack_s),
        pause=_terms(verdict.terms),
        before=_terms(verdict.before),
    )


def _terms(terms: Sequence[Term]) -> list[body.Term]:
    return [body.Term(name=term.name, ms=round(term.seconds * 1000, 3), how=term.how) for term in terms]


def _measured_body(measured: Measured) -> dict[str, float | None]:
    known = {name: getattr(measured, name) for name in WORDS if name != "final"}
    return {name: value if value is not None and isfinite(value) else None for name, value in known.items()}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None or not isfinite(seconds) else round(seconds * 1000, 3)
