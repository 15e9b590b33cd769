"""The parts of one server, put together: a controller over workers of this machine, gateway and routes before it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import structlog
from starlette.types import ASGIApp

from worldmove import __version__
from worldmove.engine.base import Engine, EngineSpec
from worldmove.engine.facts import fields_of
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.gpus import dealt
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.ledger import SqlLedger
from worldmove.fleet.local_door import Doorstep
from worldmove.fleet.notes import ServerNote
from worldmove.serve.app import build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.gauges import Gauges
from worldmove.serve.ids import RandomIds, nonce, salt
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly, is_loopback
from worldmove.serve.page import read_page
from worldmove.serve.parts import Parts
from worldmove.serve.receipts import Receipts
from worldmove.serve.server_config import ServerConfig
from worldmove.serve.spool import Spool
from worldmove.serve.wording import engine_info

log = structlog.get_logger()

LEVELS = {"task_failed": "error", "worker_of_another_version": "warning"}
"""Of what the fleet says; all else is seen with --verbose alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """The parts of one server, and the address that it answers at once it is inhabited."""

    app: ASGIApp
    gateway: Gateway
    controller: Controller
    spool: Spool
    url: str


def controller_over(
    ledger: SqlLedger,
    metrics: Metrics,
    config: ServerConfig,
    spec: EngineSpec,
    folder: Path,
    *,
    step: Doorstep,
    wall_clock: Callable[[], float],
) -> Controller:
    """Return a controller over workers of this machine. ``step``: the folder's ``doorstep``."""

    def say(event: str, fields: dict[str, object]) -> None:
        getattr(log, LEVELS.get(event, "info"))(event, **fields)

    names = tuple(f"worker-{number}" for number in range(1, config.num_workers + 1))
    hosts = LocalHostsConfig(
        worker=config.worker, folder=folder, step=step, of_workers=dealt(names, config.gpus), log=say
    )
    ports = ControllerPorts(
        hosts=LocalHosts(hosts),
        ledger=ledger,
        notes=ledger,
        probe=ledger.probe,
        wall_clock=wall_clock,
        salt=salt,
        nonce=nonce,
        counters=Counters(metrics.registry),
        log=say,
    )
    fleet = FleetConfig(
        workers=names,
        engine=fields_of(spec),
        transport=config.transport,
        protect_every=config.protect_every,
        patience_s=config.patience_s,
    )
    return Controller(fleet, ports)


def house_of(
    config: ServerConfig,
    engine: Engine[Any],
    controller: Controller,
    metrics: Metrics,
    *,
    spool: Spool,
    url: str,
    server: ServerNote,
    num_lines_dropped: Callable[[], int],
) -> House:
    """Put gateway and routes before a controller. ``server``: which one this is."""
    ids = RandomIds()
    live = LiveConfig(
        spec=engine.spec,
        engine=config.worker.engine,
        account_every=config.account_every,
        server_life=server.life,
        receipts=Receipts(bytes.fromhex(server.receipt_key)),
        rest_after_s=config.rest_after_s,
        check_blocks=config.worker.check_blocks,
    )
    gateway = Gateway(fleet=controller, config=GatewayConfig(live=live, keep_s=config.keep_s), metrics=metrics)
    controller.attach(gateway)
    _show_gauges(metrics, controller, gateway, _info(engine.spec), num_lines_dropped)
    desk = Desk(gateway, engine=engine_info(engine.spec, memory_blocks(engine)), ids=ids)
    app = build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page=read_page(), spool=spool))
    own = OwnOnly(app, names=config.names, loopback_only=is_loopback(config.host))
    return House(app=own, gateway=gateway, controller=controller, spool=spool, url=url)


def _show_gauges(
    metrics: Metrics,
    controller: Controller,
    gateway: Gateway,
    info: dict[str, str],
    num_lines_dropped: Callable[[], int],
) -> None:
    """Have what stands where be seen beside what is counted."""
    metrics.gauge(
        "worldmove_ledger_works",
        "1 while the ledger can be written; no move starts while it is 0.",
        lambda: int(controller.ledger_failure is None),
    )
    metrics.gauge(
        "worldmove_sessions_stalled",
        "Sessions whose block does not come, though their worker answers.",
        lambda: gateway.stalls.num_stalled,
    )
    metrics.registry.register(
        Gauges(
            controller,
            num_players=lambda: gateway.num_players,
            info=info,
            num_lines_dropped=num_lines_dropped,
        )
    )


@asynccontextmanager
async def at_work(house: House) -> AsyncIterator[None]:
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


def _info(spec: EngineSpec) -> dict[str, str]:
    return {"version": __version__, "engine": spec.name, "preset": spec.preset, "weights": spec.weights_sha256[:16]}


@runtime_checkable
class Remembers(Protocol):
    """An engine that can say how many blocks before the one in hand a world remembers."""

    @property
    def memory_blocks(self) -> int: ...


def memory_blocks(engine: Engine[Any]) -> int | None:
    """How many blocks back a world remembers, where its engine says so."""
    return engine.memory_blocks if isinstance(engine, Remembers) else None
