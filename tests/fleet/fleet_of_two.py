"""Two real worker processes under a controller, with a minimal gateway."""

import asyncio
import itertools
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from tests.fleet.in_memory_ledger import InMemoryLedger
from tests.fleet.playing import TestGateway
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller, ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.worker.config import WorkerConfig

PERIOD_S = 0.05


@asynccontextmanager
async def fleet(*, engine="reference:tiny", period_s=PERIOD_S, worker=None, **config):
    """Start two workers; stop them at the end."""
    logged, numbers = [], itertools.count()
    hosts = LocalHosts(LocalHostsConfig(worker=worker or WorkerConfig(engine=engine), log=print))
    ports = ControllerPorts(
        hosts=hosts,
        ledger=InMemoryLedger(),
        wall_clock=lambda: 1.0,
        salt=lambda: f"t{next(numbers)}",
        nonce=lambda: next(numbers).to_bytes(32, "big"),
        counters=Counters(CollectorRegistry()),
        log=lambda event, fields: logged.append((asyncio.get_running_loop().time(), event, fields)),
    )
    controller = Controller(FleetConfig(**{"restart": False, **config}), ports)
    gateway = TestGateway(controller, period_s)
    controller.attach(gateway)
    controller.hosts, controller.logged = hosts, logged
    try:
        await controller.start()
        yield controller, gateway
    finally:
        await controller.stop()
        await asyncio.gather(*gateway.tasks)
    failures = [fields for _, event, fields in logged if event == "task_failed"]
    assert not failures, failures
