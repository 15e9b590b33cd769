"""Whatever fails as nobody foresaw at one session in the controller: the others go on, and its move is broken off."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.fleet.fakes import ENVIRONMENT, Server, SilentGateway, Wire, copy_of, server_of
from tests.fleet.test_adoption import FakeHosts, Process, hello_of
from tests.fleet.test_attempts import LAYOUT
from tests.fleet.test_mover import mover_of
from tests.move import virtual
from tests.worker.planted import Plant, PlantedError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.containment import AGAIN_S
from worldmove.fleet.controller import Controller
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.leases import Leases
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.mover import Mover
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import WorkerState
from worldmove.move.messages import Cancel, Ended, Offer, Prepare, Prepared, Reserved, Start
from worldmove.worker.messages import Alive, Beat, Copies, Fault, Freed, Open, Opened, Poll


def answering(server: Server, mover: Mover) -> None:
    """Have both ends take part, until each is told to give up: then it does."""

    def end(worker: str, asked: Any) -> Any:
        side = "source" if worker == "a" else "destination"
        what = {"side": side, "outcome": "aborted", "reason": "cancelled", "detail": "", "phases": (), "clock": 0.0}
        nothing = {"num_bytes": 0, "num_leaves": 0, "num_groups": 0, "state_digest": ""}
        return said(worker, asked, Ended, **nothing, **what)

    def said(worker: str, asked: Any, kind: Any, **fields: Any) -> Any:
        names = {"session": asked.session, "attempt": asked.attempt, "epoch": asked.epoch}
        return kind(to="controller", sender=worker, incarnation=1, **names, **fields)

    def hear(worker: str, asked: Any) -> None:
        match asked:
            case Prepare():
                what = {"layout": LAYOUT, "environment": dict(ENVIRONMENT), "ticket": b"", "block_s": 0.01}
                mover.heard(said(worker, asked, Prepared, **what))
            case Offer():
                mover.heard(said(worker, asked, Reserved))
            case Start() | Cancel():
                mover.heard(end(worker, asked))

    for name, wire in server.wires.items():
        wire.react = lambda asked, name=name: hear(name, asked)  # type: ignore[misc]


@pytest.mark.parametrize("number", range(0, 24, 2))
def test_a_try_that_fails_in_the_middle_leaves_no_attempt_open_and_a_later_move_begins(number: int) -> None:
    async def run() -> None:
        plant = Plant("Mover.move", number, "s")
        server = await server_of("a", "b")
        faults: list[str] = []
        mover = mover_of(server, [f"x{salt:02}" for salt in range(20)], faults=faults)
        answering(server, mover)
        plant.sow()
        first = await asyncio.gather(asyncio.create_task(mover.move("s", "b", damage=False)), return_exceptions=True)
        row = server.desk.row("s")
        assert row is not None
        assert row.attempt is None
        assert plant.has_raised == bool(faults) or isinstance(first[0], PlantedError)
        if faults:
            assert isinstance(first[0], MoveReport)
            assert (first[0].outcome in (Outcome.REFUSED, Outcome.ABORTED), first[0].reason) == (True, "internal")
        later = await mover.move("s", "b", damage=False)
        assert (later.outcome, later.reason) == (Outcome.ABORTED, "cancelled")

    virtual.run(run())


class Hosts(FakeHosts):
    """Two workers that open what they are asked to, and hold it until they are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, Callable[[Any], None]] = {}
        self.held: dict[str, tuple[str, ...]] = {}

    async def start(self, worker: str, incarnation: int, on_message: Any, on_gone: Any) -> tuple[Process, Wire]:
        self.heard[worker], self.on_gone[worker] = on_message, on_gone
        wire = self.wires[worker] = Wire()
        wire.react = lambda asked: self.answer(worker, incarnation, asked)
        on_message(hello_of(worker, incarnation))
        return Process(7), wire

    def answer(self, worker: str, incarnation: int, asked: Any) -> None:
        match asked:
            case Open(session=session):
                opened = Opened(session=session, epoch=1, num_bytes=1, num_leaves=1, state_digest="d")
                self.held[worker] = (*self.held.get(worker, ()), session)
                self.holds(worker, incarnation)
                self.heard[worker](opened)
            case Beat(number=number):
                self.heard[worker](Alive(number=number))
            case Poll(poll=number):
                self.holds(worker, incarnation, poll=number)

    def holds(self, worker: str, incarnation: int, *, poll: int = 0) -> None:
        copies = tuple(copy_of(session, "live") for session in self.held.get(worker, ()))
        self.heard[worker](
            Copies(worker=worker, incarnation=incarnation, copies=copies, slots_free=1, slots_quarantined=0, poll=poll)
        )


def controller_over(gateway: SilentGateway, faults: list[object]) -> tuple[Controller, Hosts, CollectorRegistry]:
    hosts, registry = Hosts(), CollectorRegistry()

    def log(event: str, fields: dict[str, object]) -> None:
        if event == "task_failed":
            faults.append((fields["task"], fields["session"]))

    ports = ControllerPorts(
        hosts=hosts,
        ledger=MemoryLedger(),
        wall_clock=lambda: 0.0,
        salt=lambda: "x",
        nonce=lambda: bytes(32),
        counters=Counters(registry),
        log=log,
    )
    controller = Controller(FleetConfig(workers=("a", "b"), restart=False), ports)
    controller.attach(gateway)
    return controller, hosts, registry


class Failing(SilentGateway):
    """Fails at one session."""

    def take(self, worker: str, message: Any) -> None:
        if message.session == "s-1":
            raise PlantedError(message.session)
        super().take(worker, message)


def test_a_workers_word_that_cannot_be_taken_is_logged_and_counted_and_the_next_one_is_taken() -> None:
    async def run() -> None:
        gateway, faults = Failing(), list[object]()
        controller, hosts, registry = controller_over(gateway, faults)
        await controller.start()
        for session in ("s-1", "s-2"):
            hosts.heard["a"](Freed(session=session))
        hosts.heard["a"](Fault(session="s-2", task="play", message="why"))
        assert faults == [("freed", "s-1")]
        assert gateway.told == [("take", Freed(session="s-2"))]
        for where, task in (("controller", "freed"), ("worker", "play")):
            labels = {"where": where, "task": task}
            assert registry.get_sample_value("worldmove_session_failures_total", labels) == 1
        await controller.stop()

    virtual.run(run())


def test_a_recovery_that_fails_is_begun_again_and_comes_to_its_end() -> None:
    async def run() -> None:
        gateway, faults, plant = SilentGateway(), list[object](), Plant("Recovery.recover", 0, "s-1")
        controller, hosts, _ = controller_over(gateway, faults)
        await controller.start()
        for session in ("s-1", "s-2"):
            await controller.open(session, 1, "a")
        plant.sow()
        hosts.on_gone["a"](1)
        await asyncio.sleep(2 * AGAIN_S)
        assert plant.has_raised
        assert faults == [("recover", "s-1")]
        assert sum(told[0] == "lost" for told in gateway.told) == 2
        assert (await controller.open("s-3", 1, "b")).owner == "b"
        await controller.stop()

    virtual.run(run())


def test_leases_are_watched_again_where_that_has_failed_or_no_worker_would_ever_be_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look, failed = Leases._look, list[float]()

    def fails_once(self: Leases, now: float) -> None:
        if not failed:
            failed.append(now)
            raise PlantedError
        look(self, now)

    async def run() -> None:
        gateway, faults = SilentGateway(), list[object]()
        controller, hosts, _ = controller_over(gateway, faults)
        monkeypatch.setattr(Leases, "_look", fails_once)
        await controller.start()
        await asyncio.sleep(2 * AGAIN_S)
        assert faults == [("leases", "")]
        hosts.wires["a"].react = lambda message: None
        await asyncio.sleep(2 * AGAIN_S)
        assert [worker.state for worker in controller.workers()] == [WorkerState.SUSPECTED, WorkerState.READY]
        await controller.stop()

    virtual.run(run())
