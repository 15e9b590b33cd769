"""Gathers what a move is reckoned with, and says what it is expected to be: before it is made, and for a plan."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.history import History
from worldmove.fleet.lessons import learned, path_rate
from worldmove.fleet.movable import require_kept
from worldmove.fleet.past import Route
from worldmove.fleet.ports import Gateway
from worldmove.fleet.routes import Routes
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.warmed_up import warmed_up
from worldmove.fleet.wish import Wish
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.choice import choose
from worldmove.move.measured import Fixed, Measured
from worldmove.move.strategy import Strategy
from worldmove.state.environment import Environment
from worldmove.worker.messages import KEPT

LONGER = 1.01
"""By so much blocks are reckoned to become longer while one more world is followed beside theirs.

It was half of it, 157.2 to 158.0 ms, where two worlds and a follower had a GPU's whole time.
"""


class Planner:
    """One controller's. It reads, and changes nothing."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        workers: WorkerTable,
        sessions: SessionTable,
        desk: LedgerDesk,
        gateway: Callable[[], Gateway],
        history: History,
        routes: Routes,
        wall_clock: Callable[[], float],
    ) -> None:
        self._config = config
        self._workers = workers
        self._sessions = sessions
        self._desk = desk
        self._gateway = gateway
        self._history = history
        self._routes = routes
        self._wall_clock = wall_clock

    def plan(self, session: str, to: str, wish: Wish) -> Forecast:
        """Say what a move would be, were it asked for now; also while one is under way.

        Raises UserError: an unknown session or worker, or a session that is moved by nobody.
        """
        record, destination = self._sessions.get(session), self._workers.get(to)
        row = require_kept(record, self._desk.row(session))
        return self.forecast(record, self._workers.get(row.owner), destination, wish)

    def forecast(self, record: SessionRecord, source: WorkerRecord, destination: WorkerRecord, wish: Wish) -> Forecast:
        """Say what the next move of a session between two workers is expected to be."""
        transport = self._routes.choose(source, destination, wish, asyncio.get_running_loop().time())
        measured = self.measured(record, source, destination, transport)
        return Forecast(
            session=record.name,
            source=source.name,
            destination=destination.name,
            transport=transport,
            measured=measured,
            choice=choose(measured, wish.strategy),
        )

    def measured(
        self,
        record: SessionRecord,
        source: WorkerRecord,
        destination: WorkerRecord,
        transport: str,
        num_bytes: int | None = None,
    ) -> dict[Strategy, Measured]:
        """Collect what each strategy is reckoned with: what its own last moves measured, else what the warm-ups did.

        ``num_bytes``: as the source says; else as it was opened.
        """
        route = Route(source=source.name, destination=destination.name, transport=transport)
        opened = record.opened
        size = num_bytes if num_bytes is not None else opened.num_bytes if opened else 0
        found = self._of_pair(record.name, source, destination, route, size)
        reports, now = self._history.reports(), self._wall_clock()
        return {strategy: learned(found, strategy, route, reports, now) for strategy in Strategy}

    def _of_pair(
        self, session: str, source: WorkerRecord, destination: WorkerRecord, route: Route, num_bytes: int
    ) -> Measured:
        there, reports = _rates(destination), self._history.reports()
        found = warmed_up(_rates(source), there)
        load = self._workers.load(destination, session)
        computed_s = load.long_run_s or destination.block_s or found.block_s
        block_s = None if computed_s is None else LONGER * (computed_s + destination.turn_s)
        return replace(
            found,
            num_bytes=num_bytes,
            path_rate=path_rate(route, reports, there, self._wall_clock()),
            horizon_s=self._gateway().horizon_s(session),
            block_s=block_s,
            utilisation=load.taken(block_s) if found.period_s and block_s is not None else None,
            patience_s=self._config.patience_s,
            still_s=self._config.still_s,
            num_slots_free=destination.slots_free,
            is_kept_there=any((copy.session, copy.phase) == (session, KEPT) for copy in destination.copies),
            num_source_slots_free=source.slots_free,
            environment_differs=_differs(source, destination),
            same_worker=source.name == destination.name,
            ledger_healthy=self._desk.failure is None,
            fixed=_to_start_with(found.fixed, source, destination, self._desk.took_s),
        )


def _to_start_with(start: Fixed, source: WorkerRecord, destination: WorkerRecord, ledger_s: float | None) -> Fixed:
    """Return what is reckoned with before any move: the warm-ups' word, and what is measured while the workers play.

    That is how long words are on their way to both, as their last beats were. ``ledger_s``: what the ledger took for
    its last operation, as a commit is one: asked for, and answered.
    """
    start = replace(start, boundary_s=(source.way_s + destination.way_s) / 2)
    return start if ledger_s is None else replace(start, commit_s=ledger_s + destination.way_s)


def _rates(worker: WorkerRecord) -> dict[str, float]:
    return dict(worker.hello.rates) if worker.hello else {}


def _differs(source: WorkerRecord, destination: WorkerRecord) -> tuple[str, ...]:
    here, there = (Environment(fields=dict(w.hello.environment) if w.hello else {}) for w in (source, destination))
    return tuple(str(difference) for difference in here.difference(there))
