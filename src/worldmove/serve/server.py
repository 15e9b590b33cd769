"""The edge that runs a server: port, engine's facts, workers, controller, gateway, HTTP; and their clean end.

The port is bound first, so that a taken one is said in a second and not after the workers have started.
SIGTERM and SIGINT end the server: players are told, workers end, and the exit status is 0.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol, runtime_checkable

import structlog
from starlette.types import ASGIApp

from worldmove.engine.base import Engine
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller, ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway, GatewayConfig
from worldmove.serve.ids import RandomIds, nonce, salt
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.live import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly
from worldmove.serve.page import read_page
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.serve.wording import engine_info
from worldmove.worker.engines import build_engine

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What answers, and whom to end first."""

    app: ASGIApp
    gateway: Gateway


async def run(config: ServerConfig, hooks: Hooks) -> None:
    """Run a server until SIGTERM or SIGINT. Raises UserError where it cannot start."""
    stop = asyncio.Event()
    with _stopped_by_signals(stop):
        async with serving(config, hooks.stage) as url:
            hooks.ready(url)
            await stop.wait()
            hooks.stage("ending the workers")


@asynccontextmanager
async def serving(config: ServerConfig, stage: Callable[[str], None]) -> AsyncIterator[str]:
    """Serve while inside; gives the page's address. Raises UserError, WeightsError where it cannot start."""
    with bound(config.host, config.port) as listening:
        stage("reading the engine's weights")
        engine = await asyncio.to_thread(build_engine, config.worker.engine, config.worker.num_threads)
        stage(f"starting {config.num_workers} workers and warming their engines")
        async with _house(config, engine) as house, answering(house.app, listening, farewell=house.gateway.end):
            yield url_of(listening)


@asynccontextmanager
async def _house(config: ServerConfig, engine: Engine[Any]) -> AsyncIterator[House]:
    """Start workers, controller and gateway; end them in the other order."""
    metrics, ids = Metrics(), RandomIds()
    hosts = LocalHosts(LocalHostsConfig(worker=config.worker))
    ledger = MemoryLedger()
    controller = Controller(
        FleetConfig(workers=tuple(f"worker-{number}" for number in range(1, config.num_workers + 1))),
        ControllerPorts(
            hosts=hosts,
            ledger=ledger,
            wall_clock=time.time,
            salt=salt,
            nonce=nonce,
            counters=Counters(metrics.registry),
            log=lambda event, fields: log.info(event, **fields),
        ),
    )
    live = LiveConfig(spec=engine.spec, server_life=ids.life(), rest_after_s=config.rest_after_s)
    gateway = Gateway(fleet=controller, config=GatewayConfig(live=live, keep_s=config.keep_s), metrics=metrics)
    metrics.gauge("worldmove_sessions", "Sessions that are open.", lambda: len(gateway.lives))
    controller.attach(gateway)
    desk = Desk(gateway, engine=engine_info(engine.spec, memory_blocks(engine)), ids=ids)
    app = build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page=read_page()))
    looking = asyncio.create_task(gateway.run())
    try:
        await controller.start()
        own = OwnOnly(app, names=config.names, loopback_only=_is_loopback(config.host))
        yield House(app=own, gateway=gateway)
    finally:
        looking.cancel()
        await gateway.end()
        await controller.stop()
        await hosts.close()


@contextmanager
def _stopped_by_signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _is_loopback(host: str) -> bool:
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
