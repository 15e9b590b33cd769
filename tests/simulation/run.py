"""One run: a server, three workers, sessions with players and movers, under the weather of one seed."""

import asyncio
import tempfile
import traceback
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog

from tests.simulation.case import Case, Plan, Result
from tests.simulation.course import Stage, play
from tests.simulation.hosts import SimHosts
from tests.simulation.ledger import FaultyLedger
from tests.simulation.loop import EscapeError, SimLoop, StalledError
from tests.simulation.net import Wire
from tests.simulation.path import Fabric
from tests.simulation.said import Said
from tests.simulation.sealed import collected, sealed
from tests.simulation.server import Ground, Server
from tests.simulation.storm import Storm
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import RATES, Weather
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.ledger import LedgerConfig, SqlLedger, open_ledger
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.notes import MemoryNotes
from worldmove.worker.config import WorkerConfig

WORKERS = ("worker-1", "worker-2", "worker-3")
WORKER = WorkerConfig(engine="python:counter", num_slots=3, ledger_answer_s=0.6)
FLEET = FleetConfig(
    workers=WORKERS,
    transport="sim",
    prepare_s=2.0,
    reserve_s=2.0,
    move_s=8.0,
    doubt_s=4.0,
    copy_s=2.0,
    owner_s=4.0,
    lease_s=3.0,
    patience_s=6.0,
    begin_every_s=0.5,
    open_s=5.0,
    restart_after_s=0.2,
    worker_lease_s=1.25,
    beat_s=0.5,
)


def simulate(case: Case) -> Result:
    """Run one case, sealed, and say what came of it."""
    with collected():
        return _simulated(case)


def _simulated(case: Case) -> Result:
    plan = Plan.of(case)
    loop = SimLoop(case.seed, fifo=case.fifo)
    trace = Trace(loop.time)
    weather = Weather(seed=case.seed, mask=case.mask)
    kept = open_ledger(LedgerConfig()) if plan.sql else MemoryLedger()
    if plan.pairs:
        weather.rates.update(dict.fromkeys(RATES, 0.0) | {"second_tab": 0.3, "path_stalls": 0.05, "late": 0.02})
    stage = staged(case, plan, loop, trace, weather, kept)
    with tempfile.TemporaryDirectory() as stage.hosts.folder, sealed(), _logging_to(trace):
        drive(stage, play(stage))
    for node in stage.hosts.all:
        node.close_arenas()
    if isinstance(kept, SqlLedger):
        kept.close()
    return Result(
        case=case,
        broken=trace.broken,
        hash=trace.hash(),
        lines=trace.lines,
        fired=weather.fired,
        counts=dict(trace.counts),
        virtual_s=loop.time(),
        horizon_s=plan.horizon_s,
        turns=loop.turns,
    )


def directed(
    course: Callable[[Stage], Coroutine[Any, Any, None]], *, forgets: str = "", error: str = "", seed: int = 1
) -> Stage:
    """Run a course of one's own under a clear sky, and return the stage that is left. It must not be broken.

    ``forgets``: a leaf that the engine does not give away (a planted fault). ``error``: what may be logged as one.
    ``seed``: of how long everything takes.
    """
    case = Case(seed=seed, horizon_s=1.0, decodes=False, meddles=False, forgets=forgets)
    loop = SimLoop(case.seed)
    trace = Trace(loop.time)
    weather = Weather(seed=case.seed, rates=dict.fromkeys(RATES, 0.0))
    stage = staged(case, Plan.of(case), loop, trace, weather, MemoryLedger())
    with sealed(), _logging_to(trace, but=error):
        drive(stage, course(stage))
    for node in stage.hosts.all:
        node.close_arenas()
    assert not trace.broken, trace.broken
    return stage


def staged(
    case: Case, plan: Plan, loop: SimLoop, trace: Trace, weather: Weather, kept: SqlLedger | MemoryLedger
) -> Stage:
    """Put everything of a run together."""
    watch = Watch(trace, decodes=plan.decodes)
    wire = Wire(loop, weather, trace)
    fabric = Fabric(weather=weather, trace=trace)
    worker = WORKER if plan.num_slots is None else msgspec.structs.replace(WORKER, num_slots=plan.num_slots)
    hosts = SimHosts(worker, wire=wire, fabric=fabric, watch=watch, decodes=plan.decodes, forgets=case.forgets)
    watch.lists_with_power, watch.next_block_of = hosts.lists_with_power, hosts.next_block_of
    watch.kept_block_of = hosts.kept_block_of
    ground = Ground(
        config=FLEET,
        hosts=hosts,
        ledger=FaultyLedger(kept, weather=weather, watch=watch, trace=trace),
        notes=kept if isinstance(kept, SqlLedger) else MemoryNotes(),
        loop=loop,
        trace=trace,
        watch=watch,
    )
    server = Server(ground)
    storm = Storm(loop, weather, hosts, server, trace)
    watch.on_grant = storm.at_grant
    loop.on_turn = Said(server=server, hosts=hosts, watch=watch, weather=weather, loop=loop, trace=trace).look
    wire.on_move_message = lambda message: storm.at_message(message.to, message.sender)
    wire.on_protection_message = lambda worker: storm.at_message(worker, worker)
    return Stage(
        plan=plan, loop=loop, trace=trace, weather=weather, watch=watch, hosts=hosts, storm=storm, server=server
    )


def drive(stage: Stage, course: Coroutine[Any, Any, None]) -> None:
    """Run a course to its end. Whatever it raises breaks the run."""
    loop, trace = stage.loop, stage.trace

    def unhandled(_loop: Any, context: dict[str, Any]) -> None:
        trace.fail(f"{context['message']}: {context.get('exception')!r}")

    loop.set_exception_handler(unhandled)
    main = loop.run_in(loop.context("world"), course, "main")
    trace.on_broken = lambda: _ignored(main.cancel())
    try:
        loop.run_until_complete(main)
    except asyncio.CancelledError:
        if not trace.broken:
            raise
    except (Exception, EscapeError) as error:  # noqa: BLE001  (whatever it is, it ends the run, and is told)
        trace.fail("".join(traceback.format_exception(error)))
    try:
        with trace.closed():
            loop.bury()
    except StalledError as error:
        trace.fail(f"what is left after the end of the run does not end: {error}")


def _ignored(_result: object) -> None: ...


@contextmanager
def _logging_to(trace: Trace, but: str = "") -> Iterator[None]:
    """Have what the gateway logs in the trace. An error there is a failure, but for one that is meant."""

    def keep(_logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        name = event.pop("event")
        trace.add(name, **event)
        if method == "error" and name != but:
            trace.fail(f"{name}: {event.get('exc_info')!r}")
        raise structlog.DropEvent

    before = structlog.get_config()
    every_level = structlog.make_filtering_bound_logger(0)  # whatever else in this process has made it stricter
    structlog.configure(processors=[keep], wrapper_class=every_level, cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)
