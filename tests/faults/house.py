"""A whole server in this process, gateway and all, over real worker processes; and what is checked after a fault."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from tests.faults.cables import Cables
from tests.faults.chain_engine import build, replayed
from tests.faults.nursery import ENGINE, HurtableHosts, Nursery
from tests.faults.points import Board
from tests.faults.watcher import Watcher, watching
from tests.serve.fakes import RECEIPTS
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts_local import LocalHostsConfig
from worldmove.fleet.ledger import Durability, LedgerConfig, open_ledger
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.views import SessionState, WorkerState, WorkerView
from worldmove.move.strategy import Strategy
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.ids import RandomIds, nonce
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.live import Live
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.page import read_page
from worldmove.serve.wording import engine_info
from worldmove.worker.config import WorkerConfig
from worldmove.worker.messages import KEPT, Copy

FLEET = FleetConfig(
    workers=("worker-1", "worker-2"),
    copy_s=2.0,
    prepare_s=0.6,
    reserve_s=0.8,
    move_s=1.5,
    doubt_s=0.5,
    told_s=0.2,
    owner_s=1.0,
    lease_s=0.6,
    patience_s=3.0,
    begin_every_s=0.15,
    worker_lease_s=0.4,
    beat_s=0.06,
    poll_s=0.3,
    recover_every_s=0.05,
    restart_after_s=0.02,
    enforce_horizon=False,
)
"""As in production, but for the waits."""
ARENA_BYTES = 8 << 20
"""Large beside what a worker takes and gives back in between, so that a limit can be set that it alone meets."""
WITHIN_S = 8.0
"""Everything that is to come about has this long."""


@dataclass(slots=True, kw_only=True)
class House:
    """What a test holds of a running server."""

    controller: Controller
    gateway: Gateway
    desk: Desk
    hosts: HurtableHosts
    cables: Cables
    nursery: Nursery
    url: str
    logged: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    wall_clock_offset_s: float = 0.0
    seeds: dict[str, int] = field(default_factory=dict)

    def board(self, worker: str) -> Board:
        return self.nursery.board(worker)

    def worker(self, name: str) -> WorkerView:
        return next(view for view in self.controller.workers() if view.name == name)

    def live(self, session: str) -> Live:
        return self.gateway.lives[session]

    def signal(self, worker: str, number: signal.Signals) -> None:
        """Send a worker's process a signal, if there is one."""
        _signal(self.worker(worker), number)

    async def open(self, on: str = "worker-1", protect: int | None = None) -> str:
        seed = 1000 + len(self.seeds)
        view = await self.desk.open(seed=seed, on=on, protect=protect)
        self.seeds[view.name] = seed
        return view.name

    async def move(
        self, session: str, to: str, *, strategy: Strategy = Strategy.BOUNDARY_COPY, damage: bool = False
    ) -> MoveReport:
        return await self.desk.move(session, to, damage=damage, strategy=strategy.value)

    async def all_answer(self) -> None:
        """Return once every worker is there and answers."""
        await eventually(lambda: all(view.state is WorkerState.READY for view in self.controller.workers()))


def quiet() -> None:
    """Let nothing but disasters be logged: faults are what this is for."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))


async def eventually(holds: Callable[[], bool], what: str = "", within_s: float = WITHIN_S) -> None:
    """Return once something holds. Raises AssertionError if it does not in time."""
    try:
        async with asyncio.timeout(within_s):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"it did not come about: {what or holds}") from None


@asynccontextmanager
async def house_of(
    nursery: Nursery,
    *,
    fleet: FleetConfig = FLEET,
    ledger: Path | None = None,
    num_slots: int = 3,
    waits: str = "short",
    hashed_beside: bool = False,
) -> AsyncIterator[House]:
    """Serve while inside. No task of the controller may have failed by the end. ``waits``: those of the workers.

    ``hashed_beside``: pictures are hashed beside the next block, however small they are and few the cores.
    """
    logged: list[tuple[str, dict[str, object]]] = []
    numbers = itertools.count()
    metrics = Metrics()
    cables = Cables()
    worker = WorkerConfig(engine=ENGINE, num_slots=num_slots, arena_bytes=ARENA_BYTES, ledger_answer_s=0.3)
    if hashed_beside:
        worker = msgspec.structs.replace(worker, num_picture_threads=2, large_frame_bytes=0)
    hosts = HurtableHosts(LocalHostsConfig(worker=worker), nursery, cables, waits=waits)
    store = open_ledger(LedgerConfig(path=ledger, durability=Durability.NORMAL))
    made: list[House] = []
    ports = ControllerPorts(
        hosts=hosts,
        ledger=store,
        wall_clock=lambda: time.time() + made[0].wall_clock_offset_s,
        salt=lambda: f"t{next(numbers):04d}",
        nonce=nonce,
        counters=Counters(CollectorRegistry()),
        log=lambda event, fields: logged.append((event, fields)),
    )
    controller = Controller(fleet, ports)
    spec = build(1).spec
    live = LiveConfig(spec=spec, server_life=1, receipts=RECEIPTS, rest_after_s=60.0)
    gateway = Gateway(fleet=controller, config=GatewayConfig(live=live, look_every_s=0.1), metrics=metrics)
    controller.attach(gateway)
    desk = Desk(gateway, engine=engine_info(spec, None), ids=RandomIds())
    app = build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page=read_page()))
    looking = asyncio.create_task(gateway.run())
    with bound("127.0.0.1", 0) as listening:
        house = House(
            controller=controller,
            gateway=gateway,
            desk=desk,
            hosts=hosts,
            cables=cables,
            nursery=nursery,
            url=url_of(listening),
            logged=logged,
        )
        made.append(house)
        try:
            await controller.start()
            async with answering(app, listening, farewell=gateway.end):
                yield house
        finally:
            looking.cancel()
            for view in controller.workers():
                _signal(view, signal.SIGCONT)
            await gateway.end()
            await controller.stop()
            await cables.close()
            store.close()
    assert [fields for event, fields in logged if event == "task_failed"] == []


@asynccontextmanager
async def played(house: House, on: str = "worker-1", protect: int | None = None) -> AsyncIterator[tuple[str, Watcher]]:
    """Have a session under play, some blocks shown. At the end every worker is awake and linked, and it is closed.

    ``protect``: after how many blocks a snapshot is kept elsewhere; None: as the fleet is configured.
    """
    await house.all_answer()
    session = await house.open(on, protect)
    try:
        async with watching(house.url, session) as watcher:
            await eventually(lambda: len(watcher.frames) >= 3, "it is played")
            yield session, watcher
    finally:
        for view in house.controller.workers():
            house.board(view.name).clear()
            house.cables.of(view.name).mend()
            house.signal(view.name, signal.SIGCONT)
        with suppress(UserError):
            await house.desk.close(session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is left after a fault, and was found right."""

    report: MoveReport
    lost_why: str
    owner: str
    epoch: int
    blocks: int


async def settled(house: House, session: str, watcher: Watcher, report: MoveReport, *, more: int = 6) -> Outcome:
    """Check all that must hold after a fault: one owner, an equal world that goes on or is rightly lost, free slots."""
    live, controller = house.live(session), house.controller
    until = len(watcher.frames) + more
    await eventually(lambda: len(watcher.frames) >= until or bool(live.lost_why), f"{session} goes on: {report}")
    if live.lost_why is not None:
        await eventually(lambda: bool(watcher.lost), f"who watches {session} is told that it is lost")
        assert watcher.lost == [live.lost_why]
        assert controller.owner(session) is None
        assert house.desk.view(session).state is SessionState.LOST
    owner = controller.owner(session)
    blocks = equal_to_an_unmoved_world(house, session, watcher)
    await alone(house, session, owner.worker if owner else "")
    return Outcome(
        report=report,
        lost_why=live.lost_why or "",
        owner=owner.worker if owner else "",
        epoch=owner.epoch if owner else 0,
        blocks=blocks,
    )


def equal_to_an_unmoved_world(house: House, session: str, watcher: Watcher) -> int:
    """Every frame came once and in order, undamaged, and is what an unmoved engine makes of the same lists."""
    sequencer = house.live(session).sequencer
    lists = [sequencer.closed(block) for block in range(len(watcher.frames))]
    assert watcher.numbers == list(range(len(watcher.numbers))), watcher.numbers[-20:]
    assert watcher.frames == replayed(house.seeds[session], lists)
    assert watcher.damaged == 0
    return len(watcher.frames)


def _signal(view: WorkerView, number: signal.Signals) -> None:
    """Send a worker's process a signal, if there is one."""
    if view.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(view.pid, number)


def copies_of(view: WorkerView, session: str) -> list[Copy]:
    """Return what a worker holds of a session, but for what it keeps."""
    return [copy for copy in view.copies if copy.session == session and copy.phase != KEPT]


async def alone(house: House, session: str, owner: str) -> None:
    """In the end only the owner holds a copy, live and of the row's epoch, and every other slot is free.

    But for what is kept of it: a snapshot is no copy that is in anybody's way.
    """
    row = house.controller.owner(session)

    def found() -> list[tuple[str, str, int]]:
        views = house.controller.workers()
        return [(view.name, c.phase, c.epoch) for view in views for c in copies_of(view, session)]

    expected = [(owner, "live", row.epoch)] if row else []
    await eventually(lambda: found() == expected, f"only {expected} is held, and not {found()}")

    def free() -> bool:
        views = [view for view in house.controller.workers() if view.state is WorkerState.READY]
        return all(
            view.slots_free + len(view.copies) == view.num_slots and not view.slots_quarantined for view in views
        )

    await eventually(free, "every slot is free or in use")
