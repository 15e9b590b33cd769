"""One server's life in the simulation: the shipped controller, gateway and desk, over simulated hosts and a ledger."""

import asyncio
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any

from tests.simulation.engine import SPEC
from tests.simulation.hosts import SimHosts
from tests.simulation.loop import SimLoop
from tests.simulation.played import seed_of
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.notes import NoteStore
from worldmove.fleet.reports import MoveReport
from worldmove.move.admission import Verdict
from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.ledger_rules import Ledger
from worldmove.serve.allowance import Pace
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.limits import PlayLimits
from worldmove.serve.live import Live
from worldmove.serve.live_config import LiveConfig, Start
from worldmove.serve.metrics import Metrics
from worldmove.serve.receipts import KEY_BYTES, Receipts
from worldmove.serve.show import Verdict as ShowVerdict
from worldmove.serve.wording import engine_info
from worldmove.worker.messages import Opened

RECOVERED_SEED = 1_000_000
LIMITS = PlayLimits(messages=Pace(burst=64, per_s=64), max_watchers=8)
"""Less than a server's: what is beyond them takes no longer to come to than it has to."""


class Tally(Counters):
    """Counts into the trace: prometheus reads the clock."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def moved(self, report: MoveReport) -> None: ...

    def admitted(self, verdict: Verdict) -> None: ...

    def failed(self, where: str, task: str) -> None:
        self._trace.count(f"failures at the {where}")

    def ledger_failed(self) -> None:
        self._trace.count("ledger failures")

    def asked(self, operation: Operation, answer: Answer | None, took_s: float) -> None:
        self._trace.count(f"ledger {type(operation).__name__} {type(answer).__name__ if answer else 'none'}")

    def failed_over(self, outcome: str, took_s: float | None) -> None:
        self._trace.count(f"failovers {outcome}")

    def replayed(self, *, equal: bool) -> None:
        self._trace.count("blocks replayed and compared" if equal else "blocks replayed differently")

    def died(self, worker: str) -> None:
        self._trace.count("deaths")


class TallyMetrics(Metrics):
    """The gateway's numbers, for the same reason. A check of the future that fails breaks the run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def block_shown(self, late_s: float | None, compute_s: float) -> None: ...

    def failed(self, task: str) -> None:
        self._trace.count("failures at the gateway")

    def refused(self, limit: str) -> None:
        self._trace.count(f"over the limit: {limit}")

    def block_dropped(self, why: ShowVerdict) -> None:
        self._trace.count(f"not shown: {why.value}")

    def checked(self, *, equal: bool | None) -> None:
        self._trace.count("checks")
        if equal is None:
            self._trace.fail("a retired copy's block could not be compared with the owner's")
        elif not equal:
            self._trace.fail("a retired copy and the owner made different blocks of the same lists")

    def moved_with_gap(self, gap_s: float) -> None: ...


class WatchedGateway(Gateway):
    """The shipped gateway; the watch is told of each session that begins."""

    watch: Watch

    def begin(self, session: str, start: Start | None = None) -> Live:
        live = super().begin(session, start)
        self.watch.begin(live)
        return live

    def resume(self, session: str, opened: Opened, forks: tuple[int, ...] = ()) -> None:
        super().resume(session, opened, forks)
        self.watch.resume(self.lives[session])

    def lost(self, session: str, why: str) -> None:
        self.watch.said_to_be_lost(session)
        super().lost(session, why)

    def left(self, session: str, before: int, computed: int, *, sends: bool) -> None:
        self.watch.left(session, before)
        super().left(session, before, computed, sends=sends)


class Ids:
    """Names and seeds in order; a session's seed follows from its name."""

    def __init__(self, num_sessions: int) -> None:
        """``num_sessions``: how many an earlier server has named; no name is given twice."""
        self._num_sessions = num_sessions
        self._num_seeds = 0

    def session(self) -> str:
        self._num_sessions += 1
        return f"s-{self._num_sessions}"

    def next_seed(self) -> int:
        """Return the seed of the session that is named next."""
        return seed_of(f"s-{self._num_sessions + 1}")

    def seed(self) -> int:
        self._num_seeds += 1
        return RECOVERED_SEED + self._num_seeds


@dataclass(slots=True, kw_only=True)
class House:
    """A server that runs."""

    controller: Controller
    gateway: WatchedGateway
    desk: Desk
    ids: Ids
    looking: "asyncio.Task[Any]"
    context: Context
    """Its node's."""


@dataclass(slots=True)
class Numbers:
    """Salts and nonces, in order."""

    given: int = 0

    def salt(self) -> str:
        self.given += 1
        return f"t{self.given}"

    def nonce(self) -> bytes:
        self.given += 1
        return self.given.to_bytes(32, "big")


def open_house(
    *,
    life: int,
    life_number: int,
    config: FleetConfig,
    hosts: SimHosts,
    ledger: Ledger,
    notes: NoteStore,
    loop: SimLoop,
    trace: Trace,
    watch: Watch,
) -> House:
    """Put a server together. To be called in its node's context.

    ``life``: how many have lived, this one included. ``life_number``: what tells it from them on every wire.
    """

    def log(event: str, fields: dict[str, object]) -> None:
        trace.add(event, **fields)
        if event == "worker_suspected":
            watch.suspected(str(fields["worker"]))
        if event == "worker_left":
            watch.left_behind(fields["still_there"])  # type: ignore[arg-type]
        if event in ("not_protected", "copy_yields"):  # from that instant on neither is said to be protected
            watch.cannot_be_protected(str(fields["session"]))
        if event == "ledger_behind" and not hosts.is_ledger_put_back:
            trace.fail(f"the ledger is said to be behind: {fields}")
        if event == "task_failed":
            trace.fail(f"the controller's task {fields['task']!r} failed: {fields['error']}")

    numbers = Numbers(given=life << 32)
    ports = ControllerPorts(
        hosts=hosts,
        ledger=ledger,
        wall_clock=loop.time,
        salt=numbers.salt,
        nonce=numbers.nonce,
        counters=Tally(trace),
        log=log,
        notes=notes,
    )
    controller = Controller(config, ports)
    live = LiveConfig(
        spec=SPEC, server_life=life_number, receipts=Receipts(bytes(KEY_BYTES)), rest_after_s=2.0, limits=LIMITS
    )
    gateway = WatchedGateway(
        fleet=controller, config=GatewayConfig(live=live, keep_s=600.0), metrics=TallyMetrics(trace)
    )
    gateway.watch = watch
    controller.attach(gateway)
    ids = Ids(len(watch.played))
    desk = Desk(gateway, engine=engine_info(SPEC, 8), ids=ids)
    looking = asyncio.get_running_loop().create_task(gateway.run())
    context = copy_context()
    return House(controller=controller, gateway=gateway, desk=desk, ids=ids, looking=looking, context=context)
