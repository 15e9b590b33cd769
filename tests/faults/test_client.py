"""The player who has the controls, in a process of its own, killed or stopped at each phase of a move."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import House, Outcome, eventually, played, settled
from tests.faults.hurting import DESTINATION, SOURCE
from tests.faults.points import Action
from worldmove.fleet import reports

PHASES = (
    (SOURCE, "heard: Prepare"),
    (DESTINATION, "destination: shadow, reserve"),
    (SOURCE, "source: frozen, freeze"),
    (SOURCE, "at: acknowledge"),
    (DESTINATION, "at: land"),
    (SOURCE, "source: doubt, send_proof"),
    (DESTINATION, "destination: doubt, commit"),
    (DESTINATION, "destination: live, promote"),
    (DESTINATION, "sent: BlockDone"),
    (SOURCE, "source: retired, check"),
)


@asynccontextmanager
async def playing(house: House, session: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Have a client that plays a session."""
    port = house.url.rpartition(":")[2]
    client = str(Path(__file__).with_name("client.py"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-E", client, port, session, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"watching\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def moved_while(house: House, worker: str, point: str, number: signal.Signals) -> Outcome:
    """Hold a move at a point, send the client a signal, and let the move go on."""
    board = house.board(worker)
    async with played(house, SOURCE) as (session, watcher), playing(house, session) as client:
        board.order(Action.STOP, point)
        moving = asyncio.create_task(house.move(session, DESTINATION))
        await eventually(lambda: board.answer == point, f"{worker} comes to {point!r}")
        client.send_signal(number)
        await asyncio.sleep(0.02)
        house.signal(worker, signal.SIGCONT)
        report = await moving
        return await settled(house, session, watcher, report)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize(("worker", "point"), PHASES)
def test_a_player_who_is_gone_or_hangs_in_a_move_harms_neither_the_move_nor_who_else_watches(
    ground: Ground, worker: str, point: str, number: signal.Signals
) -> None:
    found = ground.run(moved_while(ground.house, worker, point, number))
    assert found.report.outcome is reports.Outcome.COMMITTED
    assert (found.owner, found.epoch) == (DESTINATION, 2)
