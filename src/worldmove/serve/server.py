"""The edge that runs a server: port, state, engine's facts, ledger, workers, controller, gateway, HTTP; and their end.

The port is bound first, so that a taken one is said in a second and not after the workers have started. What an
earlier server of the same folder has left is taken up: its workers, and every world in them.
SIGTERM and SIGINT end the server at any time: players are told, workers end, and the exit status is 0.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import structlog
from starlette.types import ASGIApp

from worldmove import __version__
from worldmove.engine.base import Engine, EngineSpec
from worldmove.errors import LedgerError, UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller, ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.ledger import Durability, LedgerConfig, SqlLedger, open_ledger
from worldmove.fleet.local_process import is_alive
from worldmove.fleet.notes import Notes
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway, GatewayConfig
from worldmove.serve.gauges import Gauges
from worldmove.serve.ids import RandomIds, nonce, salt
from worldmove.serve.lineage import next_life
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.live import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly
from worldmove.serve.page import read_page
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.serve.spool import Spool
from worldmove.serve.state_folder import LEDGER, state_folder
from worldmove.serve.wording import engine_info
from worldmove.worker.engines import build_engine
from worldmove.worker.speech import speech

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The parts of one server, and the address that it answers at once it is inhabited."""

    app: ASGIApp
    gateway: Gateway
    controller: Controller
    spool: Spool
    url: str


async def run(config: ServerConfig, hooks: Hooks) -> None:
    """Run a server until SIGTERM or SIGINT. Raises UserError, WeightsError where it cannot start."""
    running = asyncio.create_task(_run(config, hooks))
    with _first_signal(running.cancel), suppress(asyncio.CancelledError):
        await running


async def _run(config: ServerConfig, hooks: Hooks) -> None:
    async with serving(config, hooks.stage) as url:
        hooks.ready(url)
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(config: ServerConfig, stage: Callable[[str], None]) -> AsyncIterator[str]:
    """Serve while inside; gives the page's address. Raises UserError, WeightsError where it cannot start."""
    async with inhabited(config, stage) as house:
        yield house.url


@asynccontextmanager
async def inhabited(config: ServerConfig, stage: Callable[[str], None]) -> AsyncIterator[House]:
    """Serve while inside; gives the parts, for whoever measures them. Raises UserError, WeightsError."""
    with (
        bound(config.host, config.port) as listening,
        state_folder(config.state) as folder,
        _ledger_in(folder) as ledger,
    ):
        stage("reading the engine's weights")
        engine = await asyncio.to_thread(build_engine, config.worker.engine, config.worker.num_threads)
        life, num_alive = _begin_life(ledger, config)
        stage(_found(num_alive) or f"starting {config.num_workers} workers and warming their engines")
        metrics = Metrics()
        controller = _controller(ledger, metrics, config, folder)
        house = _house(config, engine, controller, metrics, url_of(listening), life)
        http = answering(house.app, listening, farewell=house.gateway.end, on_refused=metrics.refused)
        async with _started(house), http:
            yield house


@contextmanager
def _ledger_in(folder: Path) -> Iterator[SqlLedger]:
    """Open the ledger of a state folder. Raises UserError, with one sentence, where that cannot be."""
    with _unusable():
        # NORMAL: a power cut takes every worker of this host too, so what it may lose is of no use after it.
        ledger = open_ledger(LedgerConfig(path=folder / LEDGER, durability=Durability.NORMAL))
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def _unusable() -> Iterator[None]:
    """Say of a ledger that fails at the beginning that the command is to be another one, or the disk."""
    try:
        yield
    except LedgerError as error:
        code = "no_space" if error.no_space else "ledger_unusable"
        raise UserError(str(error), code=code, status=503) from error


def _begin_life(ledger: SqlLedger, config: ServerConfig) -> tuple[int, int]:
    """Return this server's life number, and how many workers of an earlier one live. Raises UserError."""
    notes = Notes(ledger)
    with _unusable():
        alive = [worker for worker in notes.workers() if worker.pid is not None and is_alive(worker.pid, worker.birth)]
        note = next_life(
            notes.server(),
            engine=config.worker.engine,
            speech=speech(),
            now_ms=time.time_ns() // 1_000_000,
            num_alive=len(alive),
        )
        notes.keep_server(note)
    return note.life, len(alive)


def _found(num_alive: int) -> str:
    return f"going on with {num_alive} workers of an earlier server" if num_alive else ""


def _controller(ledger: SqlLedger, metrics: Metrics, config: ServerConfig, folder: Path) -> Controller:
    """Return a controller over local workers."""

    def say(event: str, fields: dict[str, object]) -> None:
        log.info(event, **fields)

    ports = ControllerPorts(
        hosts=LocalHosts(LocalHostsConfig(worker=config.worker, folder=folder, log=say)),
        ledger=ledger,
        notes=ledger,
        probe=ledger.probe,
        wall_clock=time.time,
        salt=salt,
        nonce=nonce,
        counters=Counters(metrics.registry),
        log=say,
    )
    names = tuple(f"worker-{number}" for number in range(1, config.num_workers + 1))
    return Controller(FleetConfig(workers=names, transport=config.transport), ports)


def _house(
    config: ServerConfig, engine: Engine[Any], controller: Controller, metrics: Metrics, url: str, life: int
) -> House:
    """Put gateway and routes before a controller."""
    ids = RandomIds()
    live = LiveConfig(
        spec=engine.spec,
        engine=config.worker.engine,
        account_every=config.account_every,
        server_life=life,
        rest_after_s=config.rest_after_s,
        check_blocks=config.worker.check_blocks,
    )
    gateway = Gateway(fleet=controller, config=GatewayConfig(live=live, keep_s=config.keep_s), metrics=metrics)
    controller.attach(gateway)
    metrics.gauge(
        "worldmove_ledger_works",
        "1 while the ledger can be written; no move starts while it is 0.",
        lambda: int(controller.ledger_failure is None),
    )
    metrics.registry.register(Gauges(controller, num_players=lambda: gateway.num_players, info=_info(engine.spec)))
    desk = Desk(gateway, engine=engine_info(engine.spec, memory_blocks(engine)), ids=ids)
    spool = Spool()
    app = build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page=read_page(), spool=spool))
    own = OwnOnly(app, names=config.names, loopback_only=is_loopback(config.host))
    return House(app=own, gateway=gateway, controller=controller, spool=spool, url=url)


def _info(spec: EngineSpec) -> dict[str, str]:
    return {"version": __version__, "engine": spec.name, "preset": spec.preset, "weights": spec.weights_sha256[:16]}


@asynccontextmanager
async def _started(house: House) -> AsyncIterator[None]:
    """Start the workers; end everything at the end, however it comes."""
    looking = asyncio.create_task(house.gateway.run())
    try:
        await house.controller.start()
        yield
    finally:
        looking.cancel()
        await house.gateway.end()
        await house.controller.stop()
        house.spool.close()


@contextmanager
def _first_signal(act: Callable[[], object]) -> Iterator[None]:
    """Act on the first SIGTERM or SIGINT, once: the end that it begins is not itself cut off by the next one."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
    came: list[signal.Signals] = []

    def on(number: signal.Signals) -> None:
        if not came:
            act()
        came.append(number)

    for number in numbers:
        loop.add_signal_handler(number, on, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def is_loopback(host: str) -> bool:
    """Whether an address to answer at is this machine's alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@runtime_checkable
class Remembers(Protocol):
    """An engine that can say how many blocks before the one in hand a world remembers."""

    @property
    def memory_blocks(self) -> int: ...


def memory_blocks(engine: Engine[Any]) -> int | None:
    """How many blocks back a world remembers, where its engine says so."""
    return engine.memory_blocks if isinstance(engine, Remembers) else None
