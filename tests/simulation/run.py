"""One run: a server, three workers, sessions with players and movers, under the weather of one seed."""

import asyncio
import random
import traceback
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from tests.simulation.hosts import SimHosts
from tests.simulation.house import House, open_house
from tests.simulation.ledger import FaultyLedger
from tests.simulation.loop import EscapeError, SimLoop
from tests.simulation.mover import Mover
from tests.simulation.net import Wire
from tests.simulation.path import Fabric
from tests.simulation.sealed import sealed
from tests.simulation.storm import Storm
from tests.simulation.tab import Tab
from tests.simulation.trace import Trace
from tests.simulation.watch import Played, Watch
from tests.simulation.weather import Weather
from worldmove.errors import WorldMoveError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.worker.config import WorkerConfig

SERVER = "server#1"
WORKERS = ("worker-1", "worker-2", "worker-3")
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
    open_s=5.0,
    restart_after_s=0.2,
)
SETTLE_S = 60.0
"""Virtual time in which everything has come to rest once nothing strikes any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one run is given. The seed alone decides, unless more is said."""

    seed: int
    mask: frozenset[str] = frozenset()
    horizon_s: float | None = None
    fifo: bool = False
    sql: bool | None = None
    forgets: str = ""
    """A leaf that the engine does not give away (a planted fault)."""


@dataclass(slots=True, kw_only=True)
class Result:
    """What came of it."""

    case: Case
    broken: str
    """The invariant that did not hold; empty where all did."""
    hash: str
    lines: list[str]
    fired: list[str]
    counts: dict[str, int]
    virtual_s: float
    horizon_s: float
    turns: int


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a seed draws besides its weather."""

    horizon_s: float
    num_sessions: int
    sql: bool

    @classmethod
    def of(cls, case: Case) -> "Plan":
        rng = random.Random(f"plan:{case.seed}")
        horizon_s = rng.choice((1.0, 1.5, 2.0, 2.0, 3.0, 4.0, 6.0))
        num_sessions = rng.choice((1, 1, 1, 2))
        sql = rng.random() < 0.1
        return cls(
            horizon_s=horizon_s if case.horizon_s is None else case.horizon_s,
            num_sessions=num_sessions,
            sql=sql if case.sql is None else case.sql,
        )


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything of one run."""

    case: Case
    plan: Plan
    loop: SimLoop
    trace: Trace
    weather: Weather
    watch: Watch
    hosts: SimHosts
    storm: Storm
    ledger: FaultyLedger
    tabs: list[Tab] = field(default_factory=list)


def simulate(case: Case) -> Result:
    """Run one case, sealed, and say what came of it."""
    plan = Plan.of(case)
    loop = SimLoop(case.seed, fifo=case.fifo)
    trace = Trace(loop.time)
    weather = Weather(seed=case.seed, mask=case.mask)
    watch = Watch(trace)
    wire = Wire(loop, weather, trace)
    config = WorkerConfig(engine="python:counter", num_slots=3, ledger_answer_s=0.6)
    fabric = Fabric(weather=weather, trace=trace)
    hosts = SimHosts(config, wire=wire, fabric=fabric, watch=watch, forgets=case.forgets)
    storm = Storm(loop, weather, hosts, trace)
    wire.on_move_message = lambda message: storm.at_message(message.to, message.sender)
    kept = open_ledger(LedgerConfig()) if plan.sql else MemoryLedger()
    stage = Stage(
        case=case,
        plan=plan,
        loop=loop,
        trace=trace,
        weather=weather,
        watch=watch,
        hosts=hosts,
        storm=storm,
        ledger=FaultyLedger(kept, weather=weather, watch=watch, trace=trace),
    )
    with sealed(), _logging_to(trace):
        _drive(stage)
    for node in hosts.all:
        node.close_arenas()
    if plan.sql:
        kept.close()  # type: ignore[union-attr]
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


def _drive(stage: Stage) -> None:
    loop, trace = stage.loop, stage.trace

    def unhandled(_loop: Any, context: dict[str, Any]) -> None:
        trace.fail(f"{context['message']}: {context.get('exception')!r}")

    loop.set_exception_handler(unhandled)
    main = loop.run_in(loop.context(SERVER), _main(stage), "main")
    trace.on_broken = lambda: _ignored(main.cancel())
    try:
        loop.run_until_complete(main)
    except asyncio.CancelledError:
        if not trace.broken:
            raise
    except (Exception, EscapeError) as error:  # noqa: BLE001  (whatever it is, it ends the run, and is told)
        trace.fail("".join(traceback.format_exception(error)))
    loop.bury()


def _ignored(_result: object) -> None: ...


async def _main(stage: Stage) -> None:
    house = open_house(
        life=1,
        config=FLEET,
        hosts=stage.hosts,
        ledger=stage.ledger,
        loop=stage.loop,
        trace=stage.trace,
        watch=stage.watch,
    )
    await house.controller.start()
    movers = []
    for _ in range(stage.plan.num_sessions):
        session = await _open(stage, house)
        stage.tabs.append(_tab(stage, house, session))
        movers.append(_mover(stage, house, session))
    async with asyncio.TaskGroup() as group:
        for mover in movers:
            group.create_task(mover.run())
        await stage.storm.blow(stage.plan.horizon_s)
        await _within(stage, "every move has ended", lambda: not any(v.attempt for v in house.controller.sessions()))
    await _settle(stage, house)
    await _end(stage, house)


async def _open(stage: Stage, house: House) -> str:
    """Open a session; where the ledger does not answer, another."""
    while True:
        try:
            return (await house.desk.open(seed=house.ids.next_seed(), on=None)).name
        except WorldMoveError as error:
            stage.trace.add("not_opened", code=error.code)
            await asyncio.sleep(0.1)


def _tab(stage: Stage, house: House, session: str) -> Tab:
    return Tab(
        session,
        desk=house.desk,
        loop=stage.loop,
        weather=stage.weather,
        watch=stage.watch,
        trace=stage.trace,
        server=stage.loop.context(SERVER),
    )


def _mover(stage: Stage, house: House, session: str) -> Mover:
    return Mover(session, house=house, loop=stage.loop, weather=stage.weather, watch=stage.watch, trace=stage.trace)


async def _settle(stage: Stage, house: House) -> None:
    """Nothing strikes any more: every session plays again, or is lost; every slot is its owner's, or free."""
    watch = stage.watch
    for tab in stage.tabs:
        played = watch.played[tab.session]
        begun = played.next_block
        tab.press("up", down=True)
        await _within(
            stage,
            f"{tab.session} plays again or is lost",
            lambda played=played, begun=begun: _lost(played) or played.next_block >= begun + 3,  # type: ignore[misc]
        )
        stage.trace.count("sessions lost" if _lost(played) else "sessions kept")
    await _within(stage, "no attempt is open", lambda: not any(_open_attempt(p) for p in watch.played.values()))
    await _within(stage, "nobody but owners holds a copy", lambda: _only_owners(stage, house))


async def _end(stage: Stage, house: House) -> None:
    for tab in stage.tabs:
        stage.watch.check_actions(stage.watch.played[tab.session])
        await tab.end()
        await house.desk.close(tab.session)
    await _within(stage, "every slot is free", lambda: all(view.slots_free == 3 for view in house.controller.workers()))
    await house.gateway.end()
    await house.controller.stop()
    house.looking.cancel()


def _lost(played: Played) -> bool:
    return played.row is not None and played.row.lost


def _open_attempt(played: Played) -> bool:
    return played.row is not None and played.row.attempt is not None


def _only_owners(stage: Stage, house: House) -> bool:
    kept = [played for played in stage.watch.played.values() if played.row and not played.row.lost]
    num_taken = sum(3 - view.slots_free for view in house.controller.workers())
    return num_taken == len(kept)


async def _within(stage: Stage, what: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds. Breaks the run where it does not in time."""
    begun = stage.loop.time()
    while not holds():
        if stage.loop.time() - begun > SETTLE_S:
            stage.trace.fail(f"in {SETTLE_S:.0f} s it did not come about that {what}")
        await asyncio.sleep(0.1)


@contextmanager
def _logging_to(trace: Trace) -> Iterator[None]:
    """Have what the gateway logs in the trace. An error there is a failure."""

    def keep(_logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        name = event.pop("event")
        trace.add(name, **event)
        if method == "error":
            trace.fail(f"{name}: {event.get('exc_info')!r}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[keep], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)
