"""An older ledger is put back between two servers: that is said, nobody acts on it, and the newest one goes on."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.simulation.course import Stage
from tests.simulation.house import House
from tests.simulation.run import directed
from tests.simulation.server import ServerGoneError
from tests.simulation.test_protection import SESSION, all_free, ended, goes_on, kept, opened, shown, until
from worldmove.errors import UserError
from worldmove.fleet.views import SessionState
from worldmove.move.ledger_row import Row

LONG_S, LATE_S = 20.0, 1.0
Is = Callable[[Stage], bool]


def row(stage: Stage) -> Row:
    found = stage.watch.played[SESSION].row
    assert found is not None
    return found


def source_is_free(stage: Stage) -> bool:
    return not stage.hosts.nodes["worker-1"].copies_of(SESSION)


def destination_plays(stage: Stage) -> bool:
    """The source has not let its own copy go."""
    return [copy.phase.value for copy in stage.hosts.nodes["worker-2"].copies_of(SESSION)] == ["live"]


async def restarted(stage: Stage, rows: tuple[Row, ...], *, newest: bool) -> None:
    stage.server.kill()
    stage.hosts.is_ledger_put_back = not newest
    await stage.server.ledger.put_back(rows)
    stage.hosts.nodes["worker-1"].cut(LATE_S)  # who asks before the later epoch is known is answered by the older file
    await stage.server.start_again(0.1)


async def moved(stage: Stage, *, until_it: Is) -> tuple[Row, ...]:
    """Return the ledger as it was before a move, once that has been granted."""
    old = await stage.server.ledger.rows()

    async def move(house: House) -> Any:
        return await house.desk.move(SESSION, "worker-2", damage=False, strategy="boundary-copy")

    async def asked() -> None:
        with suppress(ServerGoneError):
            await stage.server.ask(move)

    moving = asyncio.create_task(asked())
    await until(stage, lambda: row(stage).owner == "worker-2", "it is granted")
    if until_it is source_is_free:
        await moving
        await goes_on(stage)
    await until(stage, lambda: until_it(stage), "that is so")
    return old


def state(stage: Stage) -> SessionState | None:
    house = stage.server.house
    return None if house is None else house.controller.sessions()[0].state


async def is_said_and_left_alone(stage: Stage) -> None:
    """It is said to be behind; for a long time nothing is granted, shown or lost; and moves are refused."""
    await until(stage, lambda: state(stage) is SessionState.LEDGER_BEHIND, "it is said that the ledger is behind")
    before, next_block = await stage.server.ledger.rows(), shown(stage)
    await asyncio.sleep(LONG_S)
    assert (await stage.server.ledger.rows(), shown(stage)) == (before, next_block)
    assert state(stage) is SessionState.LEDGER_BEHIND
    assert destination_plays(stage)
    with pytest.raises(UserError) as refused:
        await stage.server.ask(lambda house: house.desk.move(SESSION, "worker-3", damage=False))
    assert refused.value.code == "ledger_behind"


@pytest.mark.parametrize("every", [0, 2])
@pytest.mark.parametrize("until_it", [source_is_free, destination_plays])
def test_an_older_ledger_is_said_to_be_behind_and_with_the_newest_the_session_goes_on(every: int, until_it: Is) -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=every)
        await until(stage, lambda: shown(stage) > 4 and bool(kept(stage)) == bool(every), "it is played, and kept")
        old = await moved(stage, until_it=until_it)
        newest = await stage.server.ledger.rows()
        await restarted(stage, old, newest=False)
        await is_said_and_left_alone(stage)
        await restarted(stage, newest, newest=True)
        await goes_on(stage)
        await ended(stage, tab)

    assert directed(course).trace.counts["lost"] == 0


def test_a_session_of_which_the_ledger_is_behind_can_be_closed() -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) > 2, "it is played")
        await restarted(stage, await moved(stage, until_it=source_is_free), newest=False)
        await is_said_and_left_alone(stage)
        await tab.end()
        stage.watch.played[SESSION].is_closing = True
        await stage.server.ask(lambda house: house.desk.close(SESSION))
        await until(stage, lambda: all_free(stage), "every slot is free")

    directed(course)
