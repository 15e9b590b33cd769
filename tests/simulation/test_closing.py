"""A session that is closed while its owner sleeps or dies: it is closed, and nothing else is said of it."""

import asyncio

import pytest

from tests.simulation.course import Stage
from tests.simulation.ledger import FaultyLedger
from tests.simulation.run import directed
from tests.simulation.test_protection import SESSION, all_free, kept, opened, shown, until, why_lost
from worldmove.move.ledger_messages import Lose, Operation
from worldmove.move.ledger_row import Facts
from worldmove.move.ledger_rules import Ruling


async def closed(stage: Stage) -> None:
    """Close it. From now on the watch breaks the run where it is said to be lost."""
    stage.watch.played[SESSION].is_closing = True
    await stage.server.ask(lambda house: house.desk.close(SESSION))
    assert SESSION not in (await stage.server.serving()).gateway.lives
    await until(stage, lambda: all_free(stage), "every slot is free")
    assert why_lost(stage) == ""


@pytest.mark.parametrize("every", [0, 2])
@pytest.mark.parametrize("dies_after_s", [-0.4, 0.0, 0.1, 2.0, 4.9])
def test_a_session_whose_owner_dies_while_it_is_closed_is_closed(every: int, dies_after_s: float) -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=every)
        await until(stage, lambda: shown(stage) > 4 and bool(kept(stage)) == bool(every), "it is played, and kept")
        owner = stage.hosts.nodes["worker-1"]
        stage.loop.pause(owner.node)
        if dies_after_s < 0:
            owner.kill(noticed_after_s=-dies_after_s)
        closing = asyncio.ensure_future(closed(stage))
        await asyncio.sleep(max(0.0, dies_after_s))
        owner.kill()
        await closing
        await tab.end()

    assert directed(course).trace.counts["lost"] == 0


@pytest.mark.parametrize("takes_s", [0.5, 2.0])
def test_a_session_that_is_closed_while_it_is_noted_to_be_lost_is_closed_and_not_said_to_be_lost(
    takes_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = FaultyLedger.ask

    async def course(stage: Stage) -> None:
        noting = asyncio.Event()

        async def late(self: FaultyLedger, operation: Operation, facts: Facts) -> Ruling:
            if isinstance(operation, Lose):
                noting.set()
                await asyncio.sleep(takes_s)
            return await ask(self, operation, facts)

        monkeypatch.setattr(FaultyLedger, "ask", late)
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) > 2, "it is played")
        stage.hosts.nodes["worker-1"].kill()
        await noting.wait()
        await closed(stage)
        await tab.end()

    directed(course)
