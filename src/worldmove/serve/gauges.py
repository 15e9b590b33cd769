"""What stands where at this moment, for Prometheus: read from the controller's views whenever somebody looks."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from worldmove.fleet.ports import Fleet
from worldmove.fleet.views import SessionState, SessionView, WorkerState, WorkerView


class Gauges(Collector):
    """Sessions, workers, slots and players of one server."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        num_players: Callable[[], int],
        info: dict[str, str],
        num_lines_dropped: Callable[[], int] = lambda: 0,
    ) -> None:
        """``num_lines_dropped``: of the server's own log."""
        self._fleet = fleet
        self._num_lines_dropped = num_lines_dropped
        self._num_players = num_players
        self._info = info

    def collect(self) -> Iterator[Metric]:
        sessions, workers = self._fleet.sessions(), self._fleet.workers()
        yield InfoMetricFamily("worldmove_server", "What is served.", value=self._info)
        yield GaugeMetricFamily("worldmove_players", "Play connections that are open.", value=self._num_players())
        yield _sessions(sessions)
        moving = sum(view.attempt is not None for view in sessions)
        yield GaugeMetricFamily("worldmove_moves_in_flight", "Attempts that the ledger has open.", value=moving)
        yield _by_worker("worldmove_worker_up", "1: it has said hello and lives.", workers, _is_up)
        yield _by_worker(
            "worldmove_worker_incarnation", "Which process of this name it is.", workers, lambda view: view.incarnation
        )
        yield _slots(workers)
        yield _dropped(self._num_lines_dropped(), workers)
        yield from _protection(sessions)


def _is_up(view: WorkerView) -> int:
    """Say whether it plays: one that is to end does as long as sessions are moved away from it."""
    return int(view.state in (WorkerState.READY, WorkerState.LEAVING))


def _sessions(views: Sequence[SessionView]) -> Metric:
    family = GaugeMetricFamily("worldmove_sessions", "Sessions, by where they stand.", labels=["state"])
    num = Counter("throwaway" if view.throwaway else view.state.value for view in views)
    for state in (*(state.value for state in SessionState), "throwaway"):
        family.add_metric([state], num[state])
    return family


def _by_worker(
    name: str, text: str, views: Sequence[WorkerView], value: Callable[[WorkerView], int]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["worker"])
    for view in views:
        family.add_metric([view.name], value(view))
    return family


def _slots(views: Sequence[WorkerView]) -> Metric:
    family = GaugeMetricFamily("worldmove_slots", "Slots, by what they are.", labels=["worker", "state"])
    for view in views:
        is_known = _is_up(view) or view.state is WorkerState.SUSPECTED  # as it said last
        used = view.num_slots - view.slots_free - view.slots_quarantined if is_known else 0
        for state, num in (("free", view.slots_free), ("used", used), ("quarantined", view.slots_quarantined)):
            family.add_metric([view.name, state], num)
    return family


def _dropped(of_server: int, views: Sequence[WorkerView]) -> Metric:
    text = "Lines of a process's log that were dropped."
    family = CounterMetricFamily("worldmove_log_lines_dropped", text, labels=["process"])
    for name, num in (("server", of_server), *((view.name, view.num_lines_dropped) for view in views)):
        family.add_metric([name], num)
    return family


def _protection(views: Sequence[SessionView]) -> Iterator[Metric]:
    protected = [view for view in views if view.protect_every and view.state is not SessionState.LOST]
    unprotected = sum(bool(view.unprotected_why) for view in protected)
    text = "Sessions to be protected that the death of one worker may lose."
    yield GaugeMetricFamily("worldmove_sessions_unprotected", text, value=unprotected)
    oldest, text = max((view.kept_age_blocks or 0 for view in protected), default=0), "Blocks since the oldest kept."
    yield GaugeMetricFamily("worldmove_snapshot_age_blocks", text, value=oldest)
