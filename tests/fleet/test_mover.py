"""Moves as somebody asks for them."""

import asyncio

from prometheus_client import CollectorRegistry

from tests.fleet.fakes import Server, server_of
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller import ControllerPorts
from worldmove.fleet.counters import Counters
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.fleet.mover import Mover
from worldmove.fleet.reports import Outcome
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.move.messages import Prepare


class NoHosts:
    async def start(self, *_: object) -> object:
        raise NotImplementedError

    async def close(self) -> None: ...


def mover_of(server: Server, salts: list[str]) -> Mover:
    """Return a mover whose attempts get these salts, over workers that never answer."""
    sessions = SessionTable()
    sessions.add(SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False))
    ports = ControllerPorts(
        hosts=NoHosts(),  # type: ignore[arg-type]
        ledger=MemoryLedger(),
        wall_clock=lambda: 0.0,
        salt=lambda: salts.pop(0),
        nonce=lambda: bytes(32),
        counters=Counters(CollectorRegistry()),
        log=lambda event, fields: None,
    )
    return Mover(
        config=FleetConfig(workers=("a", "b"), prepare_s=0.01),
        ports=ports,
        workers=server.workers,
        sessions=sessions,
        desk=server.desk,
        gateway=lambda: server.gateway,
    )


def test_a_move_after_a_refused_one_is_newer_whatever_its_salt() -> None:
    async def run() -> list[str]:
        server = await server_of("a", "b")
        mover = mover_of(server, ["zz", "aa", "mm"])
        for _ in range(3):
            assert (await mover.move("s", "b", damage=False)).outcome is Outcome.REFUSED
        return [message.attempt for message in server.wires["a"].of(Prepare)]

    attempts = asyncio.run(run())
    assert len(attempts) == 3
    assert attempts == sorted(attempts)  # a source takes no attempt for new that is not greater than all before
