"""What the gateway counts, for Prometheus. One registry per server, so that two in one process stay apart.

Every name is in docs/metrics.md, which a test holds against what a server shows.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from worldmove.serve.show import Verdict

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

EQUAL = {True: "true", False: "false", None: "unknown"}
"""What a check has found, as a label."""


class Metrics:
    """The gateway's counters, and the registry that the server's other counters share."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._shown = Counter("worldmove_blocks_shown", "Blocks shown.", registry=registry)
        self._late = Counter(
            "worldmove_blocks_late", "Deadline misses: blocks shown after they were due.", registry=registry
        )
        self._lateness = self._times(
            "worldmove_block_lateness_seconds", "How late a block was at the gateway that was due; 0 is on time."
        )
        self._compute = self._times(
            "worldmove_block_compute_seconds", "What the engine took for a block that was shown."
        )
        self._dropped = Counter("worldmove_blocks_dropped", "Blocks not shown.", ["why"], registry=registry)
        self._checks = Counter("worldmove_checks", "Check blocks compared.", ["equal"], registry=registry)
        self._gap = self._times(
            "worldmove_move_gap_seconds", "Largest delay of a block against its due time in a committed move."
        )
        self._limited = Counter(
            "worldmove_clients_limited", "Times that a client reached a limit.", ["limit"], registry=registry
        )
        self._closed = Counter(
            "worldmove_players_closed", "Play connections that the gateway closed.", ["code"], registry=registry
        )
        self._failures = Counter(
            "worldmove_gateway_failures",
            "Failures of the gateway, at one session, that nobody foresaw.",
            ["task"],
            registry=registry,
        )
        for equal in EQUAL.values():
            self._checks.labels(equal=equal)

    def _times(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, registry=self.registry, buckets=SECONDS)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Show a number that is read whenever somebody looks."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def block_shown(self, late_s: float | None, compute_s: float) -> None:
        """Count a block that was shown, and whether it was late (None: it was not due)."""
        self._shown.inc()
        self._compute.observe(compute_s)
        if late_s is not None:
            self._lateness.observe(late_s)
        if late_s:
            self._late.inc()

    def block_dropped(self, why: Verdict) -> None:
        """Count a block that was not shown."""
        self._dropped.labels(why=why.value).inc()

    def checked(self, *, equal: bool | None) -> None:
        """Count a check of the future; None: it could not be made."""
        self._checks.labels(equal=EQUAL[equal]).inc()

    def failed(self, task: str) -> None:
        """Count a failure that nobody foresaw."""
        self._failures.labels(task=task).inc()

    def moved_with_gap(self, gap_s: float) -> None:
        """Note how late blocks came in a committed move."""
        self._gap.observe(gap_s)

    def refused(self, limit: str) -> None:
        """Count a client that reached a limit."""
        self._limited.labels(limit=limit).inc()

    def player_closed(self, code: int) -> None:
        """Count a play connection that was closed by this end."""
        self._closed.labels(code=str(int(code))).inc()

    def text(self) -> bytes:
        """Return everything in the text format."""
        return generate_latest(self.registry)
