"""What came of moves under play in a server: outcomes, pauses and their phases, frames, and which goals were missed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from worldmove.cli.benches.player import Seen
from worldmove.cli.benches.series import median_of, summary

PAUSE_GOAL_FACTOR, PAUSE_GOAL_MS = 3.0, 10.0
MATCHED = "destination commit"
"""The phase that begins once the destination has found its state equal to the source's."""

Report = Mapping[str, Any]
"""One move, as ``GET /api/moves`` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a bench found. Times in ms, one entry a move."""

    num_bytes: int
    outcomes: dict[str, int]
    pause_ms: list[float]
    gap_ms: list[float]
    copy_ms: list[float]
    took_ms: list[float]
    frames: int
    frames_damaged: int
    frames_missing: int
    checks: int
    checks_unequal: int
    blocks_late: int
    phase_ms: dict[str, list[float]] = field(default_factory=dict)
    """How long each phase of a committed move took, by its end and name."""
    starts_ms: dict[str, list[float]] = field(default_factory=dict)
    """When it began, from the freeze on."""

    @property
    def match_ms(self) -> list[float]:
        """From the freeze until the destination has compared everything."""
        return self.starts_ms.get(MATCHED, [])

    @property
    def commit_ms(self) -> list[float]:
        """From the ask of the ledger to its grant."""
        return self.phase_ms.get(MATCHED, [])

    def fields(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {
            "num_bytes": self.num_bytes,
            "outcomes": self.outcomes,
            **{f"{name}_ms": summary(values) for name, values in self._series().items()},
            "frames": self.frames,
            "frames_damaged": self.frames_damaged,
            "frames_missing": self.frames_missing,
            "checks": self.checks,
            "checks_unequal": self.checks_unequal,
            "blocks_late": self.blocks_late,
            "phases_ms": {name: summary(values) for name, values in self.phase_ms.items()},
            "phase_starts_ms": {name: summary(values) for name, values in self.starts_ms.items()},
            "samples_ms": {name: _rounded(values) for name, values in self._series().items()},
            "misses": self.misses(),
        }

    def rows(self) -> list[tuple[object, ...]]:
        """Return the table, for people: name, median, 90th percentile, largest."""
        named = {
            "pause (ms)": self.pause_ms,
            "freeze to match (ms)": self.match_ms,
            "ask of the commit to grant (ms)": self.commit_ms,
            "gap (ms)": self.gap_ms,
            "copy of as much (ms)": self.copy_ms,
        }
        found = [(name, summary(values)) for name, values in named.items()]
        return [(name, each["median"], each["p90"], each["max"]) for name, each in found if each is not None]

    def misses(self) -> list[str]:
        """Return the goals that were not met."""
        missed = []
        if set(self.outcomes) != {"committed"}:
            missed.append(f"outcomes {self.outcomes}")
        if self.frames_damaged or self.frames_missing or self.checks_unequal:
            missed.append(
                f"{self.frames_damaged} frames damaged, {self.frames_missing} missing, {self.checks_unequal} unequal"
            )
        if self.pause_ms and median(self.pause_ms) > self.goal_ms():
            missed.append(f"median pause {median(self.pause_ms):.1f} ms, goal {self.goal_ms():.1f} ms")
        if self.gap_ms and max(self.gap_ms) > 0:
            num_late = sum(gap > 0 for gap in self.gap_ms)
            missed.append(f"{num_late} moves with a late block, {max(self.gap_ms):.1f} ms at most")
        return missed

    def goal_ms(self) -> float:
        """Return the longest pause that is good: three copies and 10 ms."""
        return PAUSE_GOAL_FACTOR * (median_of(self.copy_ms) or 0.0) + PAUSE_GOAL_MS

    def sentence(self) -> str:
        """Return what came out, in one line."""
        missed = self.misses()
        moved = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        verdict = "every goal met" if not missed else "missed: " + "; ".join(missed)
        return f"{moved} of {self.num_bytes / 1e6:.1f} MB under play, {self.frames:,} frames checked: {verdict}."

    def _series(self) -> dict[str, list[float]]:
        return {
            "pause": self.pause_ms,
            "match": self.match_ms,
            "commit": self.commit_ms,
            "gap": self.gap_ms,
            "copy": self.copy_ms,
            "took": self.took_ms,
        }


def measured(num_bytes: int, reports: Sequence[Report], copies: Sequence[float], seen: Seen) -> Measured:
    """Put together what reports, copies and a player say."""
    outcomes: dict[str, int] = {}
    for report in reports:
        outcomes[report["outcome"]] = outcomes.get(report["outcome"], 0) + 1
    committed = [report for report in reports if report["outcome"] == "committed"]
    took, starts = phase_times(committed)
    return Measured(
        phase_ms=took,
        starts_ms=starts,
        num_bytes=num_bytes,
        outcomes=outcomes,
        pause_ms=[report["pause_ms"] for report in reports if report["pause_ms"] is not None],
        gap_ms=[report["gap_ms"] for report in reports if report["gap_ms"] is not None],
        took_ms=[report["took_ms"] for report in reports],
        copy_ms=list(copies),
        frames=seen.frames,
        frames_damaged=seen.damaged,
        frames_missing=seen.missing,
        checks=seen.checks,
        checks_unequal=seen.unequal,
        blocks_late=seen.late,
    )


def phase_times(reports: Sequence[Report]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return what each phase took, and when it began from the freeze on: ms, move by move, by its end and name."""
    return (
        _of_phases(reports, lambda phase, _: phase["end_ms"] - phase["start_ms"]),
        _of_phases(reports, lambda phase, frozen_ms: phase["start_ms"] - frozen_ms),
    )


def _of_phases(reports: Sequence[Report], number: Callable[[Report, float], float]) -> dict[str, list[float]]:
    """Return a number of each phase, move by move. The second argument is when the freeze began, in ms."""
    found: dict[str, list[float]] = {}
    for report in reports:
        frozen_ms = next((p["start_ms"] for p in report["phases"] if p["name"] == "freeze"), 0.0)
        for phase in report["phases"]:
            found.setdefault(f"{phase['side']} {phase['name']}", []).append(number(phase, frozen_ms))
    return found


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]
