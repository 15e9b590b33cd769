"""A ledger that is slow, and an owner that dies while its row is written: somebody looks after its session."""

import asyncio
from typing import Any

import pytest

from tests.simulation.course import Stage, close
from tests.simulation.house import House
from tests.simulation.ledger import FaultyLedger
from tests.simulation.run import directed
from tests.simulation.test_protection import SESSION, all_free, ended, goes_on, opened, owner, shown, until, why_lost
from worldmove.move.ledger_messages import CommitAttempt, Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Ruling

SLOW_S = 2.0
"""Long enough for a worker to die, to be known to be dead, and to be replaced."""


async def dies_meanwhile(stage: Stage, worker: str) -> None:
    stage.hosts.nodes[worker].kill()
    await asyncio.sleep(SLOW_S)


def test_a_session_whose_worker_dies_while_it_is_noted_is_lost_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    create = FaultyLedger.create

    async def course(stage: Stage) -> None:
        async def late(self: FaultyLedger, row: Row) -> bool:
            await dies_meanwhile(stage, row.owner)
            return await create(self, row)

        monkeypatch.setattr(FaultyLedger, "create", late)
        await stage.server.start()
        name = await stage.server.ask(_opened)
        await until(stage, lambda: bool(why_lost(stage)), "it is said to be lost", within_s=5.0)
        await close(stage, name)
        await until(stage, lambda: all_free(stage), "every slot is free")

    assert directed(course).trace.counts["lost"] == 1


async def _opened(house: House) -> str:
    return (await house.desk.open(seed=house.ids.next_seed(), on="worker-1")).name


def test_a_session_whose_new_owner_dies_while_it_is_granted_goes_on_at_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = FaultyLedger.ask

    async def course(stage: Stage) -> None:
        async def late(self: FaultyLedger, operation: Operation, facts: Facts) -> Ruling:
            ruling = await ask(self, operation, facts)
            if isinstance(operation, CommitAttempt) and operation.worker == "worker-2":
                monkeypatch.setattr(FaultyLedger, "ask", ask)
                await dies_meanwhile(stage, operation.worker)
            return ruling

        async def move(house: House) -> Any:
            return await house.desk.move(SESSION, "worker-2", damage=False, strategy="boundary-copy")

        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) >= 3, "it is played")
        monkeypatch.setattr(FaultyLedger, "ask", late)
        await stage.server.ask(move)
        await goes_on(stage)
        assert owner(stage) == "worker-1"
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0
