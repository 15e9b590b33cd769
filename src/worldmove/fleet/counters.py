"""What is counted for Prometheus, in a registry that is given."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from worldmove.fleet.reports import MoveReport
from worldmove.move.ledger_messages import Answer, Operation

PAUSES_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Counters:
    """Moves, pauses, bytes, and the ledger's answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._moves = Counter("worldmove_moves", "Moves, by how they ended", ["outcome", "reason"], registry=registry)
        self._bytes = Counter("worldmove_moved_bytes", "Bytes of state moved and proven", registry=registry)
        self._pause = Histogram(
            "worldmove_pause_seconds", "Freeze to permission to compute", buckets=PAUSES_S, registry=registry
        )
        self._ledger = Counter(
            "worldmove_ledger_operations", "Operations put to the ledger", ["operation", "answer"], registry=registry
        )
        self._deaths = Counter("worldmove_worker_deaths", "Workers that ended unasked", ["worker"], registry=registry)

    def moved(self, report: MoveReport) -> None:
        """Count a move that has ended."""
        self._moves.labels(report.outcome.value, report.reason).inc()
        if report.pause_s is not None:
            self._bytes.inc(report.num_bytes)
            self._pause.observe(report.pause_s)

    def asked(self, operation: Operation, answer: Answer | None) -> None:
        """Count an operation and its kind of answer."""
        self._ledger.labels(type(operation).__name__, type(answer).__name__ if answer else "none").inc()

    def died(self, worker: str) -> None:
        """Count a worker's death."""
        self._deaths.labels(worker).inc()
