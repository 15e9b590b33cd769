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
from worldmove.fleet.wish import Wish
from worldmove.fleet.workers import WorkerRecord, WorkerTable
from worldmove.move.choice import choose
from worldmove.move.measured import Final, Fixed, Measured
from worldmove.move.strategy import Strategy
from worldmove.state.environment import Environment


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
        here, there = _rates(source), _rates(destination)
        reports, now = self._history.reports(), self._wall_clock()
        load, period_s = self._workers.load(destination, session), there.get("period_s")
        computed_s = load.block_s or destination.block_s or there.get("block_s")
        block_s = None if computed_s is None else computed_s + destination.turn_s
        return Measured(
            num_bytes=num_bytes,
            source_hash_rate=here.get("hash_bytes_per_s"),
            path_rate=path_rate(route, reports, there, now),
            destination_hash_rate=there.get("hash_bytes_per_s"),
            horizon_s=self._gateway().horizon_s(session),
            row_rate=_lesser(here.get("row_bytes_per_s"), there.get("row_bytes_per_s")),
            copy_rate=_lesser(here.get("copy_bytes_per_s"), there.get("copy_bytes_per_s")),
            dirty_bytes=_count(here.get("dirty_bytes")),
            new_bytes=_count(here.get("new_bytes")),
            final=_final(here, there),
            period_s=period_s,
            block_s=block_s,
            utilisation=None if not period_s or block_s is None else load.share(block_s) + load.unused(block_s),
            patience_s=self._config.patience_s,
            still_s=self._config.still_s,
            num_slots_free=destination.slots_free,
            num_source_slots_free=source.slots_free,
            environment_differs=_differs(source, destination),
            same_worker=source.name == destination.name,
            ledger_healthy=self._desk.failure is None,
            fixed=_to_start_with(source, destination, self._desk.took_s),
        )


def _to_start_with(source: WorkerRecord, destination: WorkerRecord, ledger_s: float | None) -> Fixed:
    """Return what is reckoned with before any move: how the two workers' own warm-ups have frozen and installed.

    And how long words are on their way to both, as their last beats were. ``ledger_s``: what the ledger took for its
    last operation, as a commit is one: asked for, and answered.
    """
    here, there = _rates(source), _rates(destination)
    way_s = (source.way_s + destination.way_s) / 2
    start = Fixed(boundary_s=way_s)
    if ledger_s is not None:
        start = replace(start, commit_s=ledger_s + destination.way_s)
    if "freeze_s" not in here or "install_s" not in there:
        return start
    return replace(
        start,
        freeze_s=here["freeze_s"],
        install_s=there["install_s"],
        is_measured=True,
        of="to start with: as it took in the workers' warm-ups",
    )


def _rates(worker: WorkerRecord) -> dict[str, float]:
    return dict(worker.hello.rates) if worker.hello else {}


def _lesser(here: float | None, there: float | None) -> float | None:
    """Return the slower of the two ends' rates: each does its part."""
    return None if here is None or there is None else min(here, there)


def _final(here: dict[str, float], there: dict[str, float]) -> Final | None:
    """Return what an engine called final before its canary's block ended; None of one that says nothing.

    With what the other end's has computed by itself, and computed right, of what that block had handed on.
    """
    if "final_bytes" not in here:
        return None
    return Final(
        num_bytes=int(here["final_bytes"]),
        window_s=here["final_window_s"],
        last_bytes=int(here["final_last_bytes"]),
        followed_bytes=int(here.get("followed_bytes", 0.0)) if "follow_s" in there else 0,
        follow_s=there.get("follow_s", 0.0),
    )


def _count(measured: float | None) -> int | None:
    return None if measured is None else int(measured)


def _differs(source: WorkerRecord, destination: WorkerRecord) -> tuple[str, ...]:
    here, there = (Environment(fields=dict(w.hello.environment) if w.hello else {}) for w in (source, destination))
    return tuple(str(difference) for difference in here.difference(there))
