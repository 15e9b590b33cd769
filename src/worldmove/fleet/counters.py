"""What the controller counts for Prometheus, in a registry that is given. Every name is in docs/metrics.md."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from worldmove.fleet.reports import MoveReport
from worldmove.move.admission import Verdict
from worldmove.move.ledger_messages import Answer, Operation

PAUSES_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
MOVES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
FAILOVERS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
LEDGER_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)


class Counters:
    """Moves, pauses, bytes, admission, and the ledger's answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._moves = Counter("worldmove_moves", "Moves, by how they ended", ["outcome", "reason"], registry=registry)
        self._took = Histogram(
            "worldmove_move_seconds", "Request to end of a move", ["outcome"], buckets=MOVES_S, registry=registry
        )
        self._phase = Histogram(
            "worldmove_move_phase_seconds",
            "One phase of one end of a committed move",
            ["side", "phase"],
            buckets=PAUSES_S,
            registry=registry,
        )
        self._bytes = Counter("worldmove_moved_bytes", "Bytes of state moved and proven", registry=registry)
        self._pause = Histogram(
            "worldmove_pause_seconds", "Freeze to permission to compute", buckets=PAUSES_S, registry=registry
        )
        self._deaths = Counter("worldmove_worker_deaths", "Workers that ended unasked", ["worker"], registry=registry)
        self._failures = Counter(
            "worldmove_session_failures",
            "Failures, in one session's conduct, that nobody foresaw",
            ["where", "task"],
            registry=registry,
        )
        self._failovers = Counter("worldmove_failovers", "Failovers, by how they ended", ["outcome"], registry=registry)
        self._failover_s = Histogram(
            "worldmove_failover_seconds",
            "From when an owner was known to be gone to the next block",
            buckets=FAILOVERS_S,
            registry=registry,
        )
        self._replayed = Counter(
            "worldmove_replayed_blocks", "Blocks replayed after a failover, and compared", ["equal"], registry=registry
        )
        self._admission = _Admission(registry)
        self._ledger = _Ledger(registry)

    def moved(self, report: MoveReport) -> None:
        """Count a move that has ended."""
        self._moves.labels(report.outcome.value, report.reason).inc()
        self._took.labels(report.outcome.value).observe(report.took_s)
        if report.pause_s is not None:
            self._bytes.inc(report.num_bytes)
            self._pause.observe(report.pause_s)
            for phase in report.phases:
                self._phase.labels(phase.side, phase.name).observe(phase.end_s - phase.start_s)

    def admitted(self, verdict: Verdict) -> None:
        """Note a verdict of admission, whether it is enforced or not."""
        self._admission.take(verdict)

    def asked(self, operation: Operation, answer: Answer | None, took_s: float) -> None:
        """Count an operation, its kind of answer and its time."""
        self._ledger.take(operation, answer, took_s)

    def ledger_failed(self) -> None:
        """Count an operation that the ledger could not be asked, or did not answer."""
        self._ledger.errors.inc()

    def failed_over(self, outcome: str, took_s: float | None) -> None:
        """Count a failover that has ended."""
        self._failovers.labels(outcome).inc()
        if took_s is not None:
            self._failover_s.observe(took_s)

    def replayed(self, *, equal: bool) -> None:
        """Count a replayed block that was compared with what was shown."""
        self._replayed.labels(str(equal).lower()).inc()

    def died(self, worker: str) -> None:
        """Count a worker's death."""
        self._deaths.labels(worker).inc()

    def failed(self, where: str, task: str) -> None:
        """Count a failure that nobody foresaw, at a worker or at the controller."""
        self._failures.labels(where, task).inc()


class _Admission:
    """What was expected of moves. The terms are those of the newest verdict: a histogram of each would tell less."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._verdicts = Counter(
            "worldmove_admission_verdicts", "Verdicts, by reason (admitted: none)", ["reason"], registry=registry
        )
        self._term = Gauge(
            "worldmove_admission_term_seconds", "Terms of the newest verdict", ["term"], registry=registry
        )
        self._slack = Gauge(
            "worldmove_admission_slack_seconds", "Horizon less expected pause, newest verdict", registry=registry
        )

    def take(self, verdict: Verdict) -> None:
        self._verdicts.labels(verdict.reason or "admitted").inc()
        for term in verdict.terms:
            self._term.labels(term.name).set(term.seconds)
        if verdict.slack_s is not None:
            self._slack.set(verdict.slack_s)


class _Ledger:
    """What was put to the ledger."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.errors = Counter("worldmove_ledger_errors", "Operations that the ledger did not answer", registry=registry)
        self._operations = Counter(
            "worldmove_ledger_operations", "Operations put to the ledger", ["operation", "answer"], registry=registry
        )
        self._seconds = Histogram(
            "worldmove_ledger_seconds", "Time of one operation", ["operation"], buckets=LEDGER_S, registry=registry
        )

    def take(self, operation: Operation, answer: Answer | None, took_s: float) -> None:
        name = type(operation).__name__
        self._operations.labels(name, type(answer).__name__ if answer else "none").inc()
        self._seconds.labels(name).observe(took_s)
