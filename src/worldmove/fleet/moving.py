"""A whole move: its tries, what was measured for it, and the one report that comes of it."""

import hashlib
from collections.abc import Sequence
from statistics import median_low

from worldmove.errors import MoveRefused
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.tries import Ending, Plan
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.admission import Verdict
from worldmove.move.measured import Measured
from worldmove.move.messages import Ended, Prepared
from worldmove.move.remedy import cheapest
from worldmove.move.report import merge_phases, pause_s
from worldmove.state.manifest import Layout

CORRUPTING = "corrupting-"
NUM_RATES = 8
RATE_AGE_S = 600.0
"""A rate that was measured longer ago is of another time; and a path that was refused would never be measured again."""
RATE_FROM_BYTES = 1 << 20
"""A smaller move's time is that of its messages."""


def measured(
    plan: Plan, prepared: Prepared, horizon_s: float | None, path_rate: float | None, *, ledger_healthy: bool = True
) -> Measured:
    """Collect what admission goes by. ``path_rate``: bytes per second (see the function of that name)."""
    here, there = _rates(plan.source), _rates(plan.destination)
    return Measured(
        num_bytes=sum(Layout.from_bytes(prepared.layout).storages),
        source_hash_rate=here.get("hash_bytes_per_s"),
        path_rate=path_rate,
        destination_hash_rate=there.get("hash_bytes_per_s"),
        horizon_s=horizon_s,
        ledger_healthy=ledger_healthy,
    )


def path_rate(plan: Plan, reports: Sequence[MoveReport], now: float) -> float | None:
    """Return what a move's path carries between its two workers, bytes per second; None where nothing measured it.

    The median of the last moves over it; and where there were none of late, what the destination measured of it. A
    path that damages or breaks what it carries is as fast as the one that it wraps.
    """
    moved = [rate for told in reports if now - told.started_at <= RATE_AGE_S and (rate := _landed(plan, told))]
    if moved:
        return median_low(moved[-NUM_RATES:])
    rates, wrapped = _rates(plan.destination), plan.transport.rpartition("-")[2]
    return rates.get(f"{plan.transport}_bytes_per_s") or rates.get(f"{wrapped}_bytes_per_s")


def _landed(plan: Plan, told: MoveReport) -> float | None:
    """Return how fast an earlier move of the same two workers over the same path has landed, if it tells that."""
    same = (told.transport, told.source, told.destination) == (plan.transport, plan.source.name, plan.destination.name)
    if not same or told.outcome is not Outcome.COMMITTED or told.num_bytes < RATE_FROM_BYTES:
        return None
    took_s = sum(phase.end_s - phase.start_s for phase in told.phases if phase.name in ("land", "fetch"))
    return told.num_bytes / took_s if took_s > 0 else None


def require(verdict: Verdict, measured: Measured) -> None:
    """Raise MoveRefused, with the numbers and what would help, for a move that is not admitted."""
    if not verdict.admitted:
        remedy = cheapest(measured, verdict.strategy)
        help_by = f"; it would take {remedy.sentence}" if remedy else ""
        raise MoveRefused(verdict.reason, verdict.detail + help_by)


def report(plan: Plan, ending: Ending, *, epoch: int, tries: int, started_at: float, took_s: float) -> MoveReport:
    """Put a move's last try into one value."""
    ends = [end for end in (ending.source, ending.destination) if end is not None]
    largest = max(ends, key=lambda end: end.num_bytes, default=None)
    phases = merge_phases(ending.source, ending.destination)
    return MoveReport(
        session=plan.session,
        attempt=plan.attempt,
        source=plan.source.name,
        destination=plan.destination.name,
        outcome=ending.outcome,
        reason=ending.reason,
        detail=_sentence(plan, ending, tries),
        epoch=epoch,
        tries=tries,
        transport=plan.transport,
        strategy=plan.strategy.value,
        epoch_before=plan.epoch,
        environment_digest=_environment_digest(plan) if ending.source or ending.destination else "",
        started_at=started_at,
        took_s=took_s,
        pause_s=pause_s(phases) if ending.outcome is Outcome.COMMITTED else None,
        phases=phases,
        num_bytes=largest.num_bytes if largest else 0,
        num_leaves=largest.num_leaves if largest else 0,
        num_groups=largest.num_groups if largest else 0,
        num_checked=_num_checked(ending.destination),
        source_digest=ending.source.state_digest if ending.source else "",
        destination_digest=ending.destination.state_digest if ending.destination else "",
    )


def _environment_digest(plan: Plan) -> str:
    """Return SHA-256 of the environment that both ends share: they were compared before anything was offered."""
    fields = plan.destination.hello.environment if plan.destination.hello else {}
    text = "".join(f"{name}={fields[name]}\n" for name in sorted(fields))
    return hashlib.sha256(text.encode()).hexdigest()


def _num_checked(destination: Ended | None) -> int:
    """Return how many leaves the destination says it has compared: those of a state that it proved and committed."""
    if destination is None or destination.outcome != "committed" or destination.num_groups == 0:
        return 0
    return destination.num_leaves


def _rates(worker: WorkerRecord) -> dict[str, float]:
    return dict(worker.hello.rates) if worker.hello else {}


def _sentence(plan: Plan, ending: Ending, tries: int) -> str:
    if ending.outcome is Outcome.COMMITTED:
        return f"Moved to {plan.destination.name}"
    if plan.transport.startswith(CORRUPTING) and ending.reason == "mismatch":
        return f"One part arrived damaged ({tries} {'try' if tries == 1 else 'tries'})"
    return ending.detail
