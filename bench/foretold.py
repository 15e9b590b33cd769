"""The pauses that were recorded, reckoned again in their order: what would each have been expected to be?

    python -m bench.foretold RESULT.json ...        a result of bench.under_play, or of bench.prediction

Each move is reckoned with what the moves before it have measured, and with nothing else but what a warm-up says.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.prediction import errors_of
from worldmove.fleet.lessons import learned, path_rate
from worldmove.fleet.past import Route
from worldmove.move.admission import admit
from worldmove.move.measured import Final, Fixed, Measured
from worldmove.move.report import MoveReport, Outcome, PhaseTime
from worldmove.move.strategy import Strategy

BETWEEN_S = 3.0
"""From one move to the next."""
WORKERS = ("worker-1", "worker-2")

WARMED_UP = Measured(
    num_bytes=0,
    source_hash_rate=3540e9,
    path_rate=None,
    destination_hash_rate=3540e9,
    horizon_s=0.65,
    row_rate=1756e9,
    copy_rate=900e9,
    dirty_bytes=1_750_000_000,
    new_bytes=1_714_000_000,
    final=Final(
        num_bytes=649_000_000, window_s=0.06, last_bytes=16_000_000, followed_bytes=1_065_000_000, follow_s=0.06
    ),
    period_s=0.48,
    block_s=0.15,
    utilisation=0.0,
    fixed=Fixed(freeze_s=0.002067, install_s=0.001885, commit_s=0.00061, is_measured=True),
)
"""About what two workers on one H200 have said before their first move. A run's result does not
hold what its own have said, so what comes out for the first moves is as good as this is."""
RATES = {"peer_bytes_per_s": 900e9, "shm_bytes_per_s": 2e9, "tcp_bytes_per_s": 1e9}


def main() -> None:
    """Reckon and print."""
    options = argparse.ArgumentParser("foretold", description=__doc__)
    options.add_argument("results", nargs="+", type=Path)
    for path in options.parse_args().results:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows = foretold([row for row in found["samples"]["moves"] if row["outcome"] == "committed"])
        sys.stdout.write(json.dumps({"result": str(path), **summary(rows)}, indent=2) + "\n")
        for row in rows:
            terms = "  ".join(f"{name} {ms:.1f}" for name, ms in row["terms_ms"].items())
            expected = float("nan") if row["expected_ms"] is None else row["expected_ms"]
            sys.stdout.write(f"{row['strategy']:14}{expected:8.1f}{row['pause_ms']:8.1f}   {terms}\n")


def foretold(moves: Sequence[Mapping[str, Any]], warmed_up: Measured = WARMED_UP) -> list[dict[str, Any]]:
    """Return each move with what it would have been expected to take."""
    reports: list[MoveReport] = []
    rows = []
    for number, move in enumerate(moves):
        now = BETWEEN_S * number
        report = report_of(move, now)
        route = Route(source=report.source, destination=report.destination, transport=report.transport)
        known = replace(warmed_up, num_bytes=report.num_bytes, path_rate=path_rate(route, reports, RATES, now))
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
