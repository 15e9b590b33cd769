"""Which path the next move takes between two workers: the configured one, or what both have, or what has not lied."""

from worldmove.fleet.path_health import PathHealth, available, measured
from worldmove.fleet.tries import Ending, Plan
from worldmove.fleet.wish import Wish
from worldmove.fleet.workers import WorkerRecord
from worldmove.transport.link_speed import limit_of, throttled_name

CORRUPTING = "corrupting-"


class Routes:
    """One controller's paths, with those that have lied of late. ``now``: seconds, of one clock."""

    def __init__(self, *, transport: str, quarantine_s: float) -> None:
        self._transport = transport
        self._paths = PathHealth(quarantine_s=quarantine_s)

    def choose(self, source: WorkerRecord, destination: WorkerRecord, wish: Wish, now: float) -> str:
        """Return the transport's name."""
        rates = [worker.hello.rates if worker.hello else {} for worker in (source, destination)]
        wanted = available(self._transport, *rates)
        chosen = self._paths.choose((source.name, destination.name), wanted, now, measured(*rates))
        if wish.damage:
            return CORRUPTING + chosen
        return chosen if wish.link is None else throttled_name(wish.link, chosen)

    def ended(self, plan: Plan, ending: Ending, now: float) -> bool:
        """Note how a try ended. Whether its path is not taken for a while: it lied, by itself and not for a trial."""
        if ending.reason != "mismatch" or plan.transport.startswith(CORRUPTING):
            return False
        limit = limit_of(plan.transport)
        path = plan.transport if limit is None else limit[1]
        return self._paths.lied((plan.source.name, plan.destination.name), path, now)
