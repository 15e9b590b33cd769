"""Worlds that play on while others beside them move, and while the source of a move is killed in the middle of it.

The same for a GPU and for its double: two worker processes under a real server, and at the end every frame of the
neighbour is compared with a world that nothing happened beside.
"""

import asyncio
import hashlib
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from tests.worker.device_engine import DeviceEngine
from worldmove.cli.benches.player import Seen, playing
from worldmove.engine.base import KeyChange
from worldmove.errors import WorldMoveError
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import WorkerState
from worldmove.serve.house import House
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

NEIGHBOUR, SEED = "s-neighbour", 3
LIMIT_S = 60.0


async def beside(
    engine: str, twin: DeviceEngine, kills_after_s: Sequence[float | None], *, gpus: tuple[str, ...] = ()
) -> list[Outcome | None]:
    """Move a world to the neighbour's worker, once for each entry: seconds until its source is killed, or None.

    Returns how each move ended; None where the server had no word for it. Raises AssertionError if the neighbour's
    world is not what ``twin`` makes of its lists.
    """
    worker = WorkerConfig(engine=engine, num_slots=3, log_level="error")
    config = ServerConfig(port=0, num_workers=2, worker=worker, gpus=gpus, rest_after_s=600.0)
    async with inhabited(config, lambda _: None) as house:
        house.gateway.begin(NEIGHBOUR)
        await house.controller.open(NEIGHBOUR, SEED, "worker-2")
        async with playing(house.url, NEIGHBOUR) as seen:
            ended = [await _one(house, f"s-{number}", after_s) for number, after_s in enumerate(kills_after_s)]
            async with asyncio.timeout(LIMIT_S):
                await seen.frames_later(8)
        sequencer = house.gateway.live(NEIGHBOUR).sequencer
        lists = [[(c.number, c.key, c.down) for c in sequencer.closed(block)] for block in range(sequencer.reaches)]
    _compare(seen, twin, lists)
    return ended


async def _one(house: House, session: str, after_s: float | None) -> Outcome | None:
    """Open a world on the first worker, play it, move it, and kill that worker in the middle if asked to."""
    house.gateway.begin(session)
    await house.controller.open(session, 5, "worker-1")
    outcome = None
    async with playing(house.url, session) as seen, asyncio.timeout(LIMIT_S):
        await seen.frames_later(6)
        moving = asyncio.create_task(house.controller.move(session, "worker-2"))
        if after_s is not None:
            await asyncio.sleep(after_s)
            view = house.controller.workers()[0]
            assert view.pid is not None
            os.kill(view.pid, signal.SIGKILL)
            await _replaced(house, view.incarnation)
        with suppress(WorldMoveError):
            outcome = (await moving).outcome
    with suppress(WorldMoveError):
        await house.controller.close(session)
    return outcome


async def _replaced(house: House, incarnation: int) -> None:
    """Return when the first worker plays again, in another process."""
    while True:
        view = house.controller.workers()[0]
        if view.incarnation > incarnation and view.state is WorkerState.READY:
            return
        await asyncio.sleep(0.05)


def _compare(seen: Seen, twin: DeviceEngine, lists: Sequence[Sequence[tuple[int, str, bool]]]) -> None:
    assert (seen.damaged, seen.missing) == (0, 0)
    assert len(seen.digests) > 16
    session, expected = twin.open(SEED), []
    for changes in lists:
        block = twin.step(session, [KeyChange(number=number, key=key, down=down) for number, key, down in changes])
        expected += [hashlib.sha256(frame.tobytes()).hexdigest() for frame in block.frames]
    differing = [frame for frame, digest in seen.digests.items() if expected[frame] != digest]
    assert differing == []
