"""The pauses that were recorded, reckoned again in their order: what would each have been expected to be?

    python -m bench.foretold RESULT.json ...        results of bench.under_play

Each move is reckoned with what the moves before it have measured, and with nothing else but what the workers measured
before their hello: the result says so itself. One of which it does not is given what another file says (``--rates``),
and what comes out for its first moves is as good as that. Where it came from is part of what is printed.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.prediction import errors_of
from worldmove.cli.json_text import json_text
from worldmove.errors import UserError
from worldmove.fleet.lessons import learned, path_rate
from worldmove.fleet.past import Route
from worldmove.fleet.warmed_up import Rates, warmed_up
from worldmove.move.admission import admit
from worldmove.move.measured import Measured
from worldmove.move.report import MoveReport, Outcome, PhaseTime
from worldmove.move.strategy import Strategy
from worldmove.serve.tempo import horizon_s

BETWEEN_S = 3.0
"""From one move to the next."""
WORKERS = ("worker-1", "worker-2")


def main() -> None:
    """Reckon and print."""
    options = options_of(None)
    try:
        for path in options.results:
            sys.stdout.write(told(path, options.rates))
    except UserError as error:
        sys.exit(str(error))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser("foretold", description=__doc__)
    options.add_argument("results", nargs="+", type=Path)
    options.add_argument("--rates", type=Path, help="a file with the rates of a result that has none of its own")
    return options.parse_args(arguments)


def told(path: Path, rates_of: Path | None = None) -> str:
    """Return what is printed of one result. Raises UserError: nobody says what its workers measured."""
    found = json.loads(path.read_text(encoding="utf-8"))
    source = path if found["samples"].get("rates") or rates_of is None else rates_of
    rates = rates_in(json.loads(source.read_text(encoding="utf-8")))
    if rates is None:
        raise UserError(f"{source} does not say what its workers measured before their hello; name a file with --rates")
    rows = foretold([row for row in found["samples"]["moves"] if row["outcome"] == "committed"], rates)
    said = {"result": str(path), "rates_of": str(source), "rates": rates, **summary(rows)}
    return "".join([json_text(said, indent=2) + "\n", *map(_line, rows)])


def rates_in(found: Mapping[str, Any]) -> dict[str, dict[str, float]] | None:
    """Return what each worker measured, of a result or of a file that says that alone; None where it does not."""
    rates: dict[str, dict[str, float]] | None = found.get("samples", found).get("rates")
    return rates or None


def _line(row: Mapping[str, Any]) -> str:
    terms = "  ".join(f"{name} {ms:.1f}" for name, ms in row["terms_ms"].items())
    expected = float("nan") if row["expected_ms"] is None else row["expected_ms"]
    return f"{row['strategy']:14}{expected:8.1f}{row['pause_ms']:8.1f}   {terms}\n"


def foretold(moves: Sequence[Mapping[str, Any]], rates: Mapping[str, Rates]) -> list[dict[str, Any]]:
    """Return each move with what it would have been expected to take. ``rates``: of each worker."""
    reports: list[MoveReport] = []
    rows = []
    for number, move in enumerate(moves):
        now = BETWEEN_S * number
        report = report_of(move, now)
        route = Route(source=report.source, destination=report.destination, transport=report.transport)
        there = rates[report.destination]
        known = replace(
            known_of(rates[report.source], there),
            num_bytes=report.num_bytes,
            path_rate=path_rate(route, reports, there, now),
        )
        strategy = Strategy(report.strategy)
        verdict = admit(learned(known, strategy, route, reports, now), strategy)
        rows.append(
            {
                "strategy": report.strategy,
                "to": report.destination,
                "pause_ms": move["pause_ms"],
                "expected_ms": round(verdict.expected_s * 1000, 3) if verdict.terms else None,
                "terms_ms": {term.name: round(term.seconds * 1000, 3) for term in verdict.terms},
            }
        )
        reports.append(report)
    return rows


def known_of(here: Rates, there: Rates) -> Measured:
    """Return what was known before any move of two workers where nobody else played.

    ``commit_s``: what the ledger took, where a file says that too.
    """
    found = warmed_up(here, there)
    horizon = horizon_s(here["period_s"], [here["block_s"]])
    fixed = replace(found.fixed, commit_s=there.get("commit_s", found.fixed.commit_s))
    return replace(found, horizon_s=horizon, utilisation=0.0, fixed=fixed)


def report_of(move: Mapping[str, Any], started_at: float) -> MoveReport:
    """Return one row of a result as the report that it was."""
    return MoveReport(
        session="s",
        attempt="a",
        source=next(name for name in WORKERS if name != move["to"]),
        destination=move["to"],
        outcome=Outcome.COMMITTED,
        reason="done",
        detail="",
        epoch=1,
        tries=1,
        transport=move["transport"],
        started_at=started_at,
        took_s=1.0,
        strategy=move["strategy"],
        pause_s=move["pause_ms"] / 1000,
        phases=tuple(
            PhaseTime(side=side, name=phase, start_s=start / 1000, end_s=end / 1000)
            for (side, _, phase), (start, end) in ((name.partition("."), span) for name, span in move["phases"].items())
        ),
        num_bytes=move["num_bytes"],
        moved_bytes=move["moved_bytes"],
        pulled_bytes=move["pulled_bytes"],
    )


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say how far expectation and outcome lie apart, in allowances: 15 % of a pause or 2 ms, whichever is more."""
    names = dict.fromkeys(row["strategy"] for row in rows)
    return {
        "all": _allowances(rows),
        **{name: _allowances([row for row in rows if row["strategy"] == name]) for name in names},
    }


def _allowances(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    spread = errors_of(rows)["of_allowance"]
    return {name: spread.get(name) for name in ("n", "p50", "p90", "max")}


if __name__ == "__main__":
    main()
