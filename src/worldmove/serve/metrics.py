"""What the gateway counts, for Prometheus. One registry per server, so that two in one process stay apart."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from worldmove.serve.show import Verdict

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Metrics:
    """The gateway's counters, and the registry that the server's other counters share."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._shown = Counter("worldmove_blocks_shown", "Blocks shown.", registry=self.registry)
        self._late = Counter("worldmove_blocks_late", "Blocks shown after they were due.", registry=self.registry)
        self._dropped = Counter("worldmove_blocks_dropped", "Blocks not shown.", ["why"], registry=self.registry)
        self._checks = Counter("worldmove_checks", "Check blocks compared.", ["equal"], registry=self.registry)
        self._gap = Histogram(
            "worldmove_move_gap_seconds",
            "Largest delay of a block against its due time in a committed move.",
            registry=self.registry,
            buckets=SECONDS,
        )

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Show a number that is read whenever somebody looks."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def block_shown(self, late_s: float | None) -> None:
        """Count a block that was shown, and whether it was late."""
        self._shown.inc()
        if late_s:
            self._late.inc()

    def block_dropped(self, why: Verdict) -> None:
        """Count a block that was not shown."""
        self._dropped.labels(why=why.value).inc()

    def checked(self, *, equal: bool) -> None:
        """Count a check of the future."""
        self._checks.labels(equal=str(equal).lower()).inc()

    def moved_with_gap(self, gap_s: float) -> None:
        """Note how late blocks came in a committed move."""
        self._gap.observe(gap_s)

    def text(self) -> bytes:
        """Return everything in the text format."""
        return generate_latest(self.registry)
