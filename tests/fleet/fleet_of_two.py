"""Two real worker processes under a controller, with a minimal gateway and the real ledger."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from prometheus_client import CollectorRegistry

from tests.faults.nursery import Nursery, NurseryHosts
from tests.fleet.playing import PlayingGateway
from tests.own_path import own_path
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.worker.config import WorkerConfig


@dataclass(slots=True, kw_only=True)
class Fleet:
    """What a test holds of a running fleet."""

    controller: Controller
    gateway: PlayingGateway
    hosts: LocalHosts
    logged: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def pid(self, worker: str) -> int:
        views = [view for view in self.controller.workers() if view.name == worker]
        return next(view.pid for view in views if view.pid is not None)


async def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Return once a condition holds. Raises AssertionError if it does not in time."""
    for _ in range(int(within_s / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come about")


@asynccontextmanager
async def fleet_of_two(
    *,
    worker: WorkerConfig | None = None,
    config: FleetConfig | None = None,
    period_s: float = 0.1,
    nursery: Nursery | None = None,
) -> AsyncIterator[Fleet]:
    """Start two workers, as the product does or in a nursery; stop them at the end.

    No task of the controller may have failed meanwhile.
    """
    numbers = itertools.count()
    logged: list[tuple[str, dict[str, object]]] = []
    ledger = open_ledger(LedgerConfig())
    local = LocalHostsConfig(
        worker=worker or WorkerConfig(engine="reference:tiny"), environment={"PYTHONPATH": own_path()}
    )
    hosts = LocalHosts(local) if nursery is None else NurseryHosts(local, nursery)
    ports = ControllerPorts(
        hosts=hosts,
        ledger=ledger,
        wall_clock=lambda: 1.0,
        salt=lambda: f"t{next(numbers)}",
        nonce=lambda: os.urandom(32),
        counters=Counters(CollectorRegistry()),
        log=lambda event, fields: logged.append((event, fields)),
    )
    controller = Controller(replace(config or FleetConfig(), restart=bool(config and config.restart)), ports)
    gateway = PlayingGateway(controller, period_s)
    controller.attach(gateway)
    showing = asyncio.create_task(gateway.run())
    try:
        await controller.start()
        yield Fleet(controller=controller, gateway=gateway, hosts=hosts, logged=logged)
    finally:
        await controller.stop()
        showing.cancel()
        ended = await asyncio.gather(showing, return_exceptions=True)
        ledger.close()
    assert isinstance(ended[0], asyncio.CancelledError), ended
    assert [fields for event, fields in logged if event == "task_failed"] == []
