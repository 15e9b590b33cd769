"""Two real workers whose sessions lie on a device, which the double stands in for: real moves under play."""

import asyncio

import pytest

from tests.fleet.fleet_of_two import fleet_of_two
from tests.fleet.playing import Play, every_change_used_once, replayed
from tests.fleet.test_two_workers import SEED, move_under_play
from tests.nursed import Nursed
from tests.worker.device_engine import build
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.worker.config import WorkerConfig

WORKER = WorkerConfig(engine="python:tests.worker.device_engine:build", arena_bytes=4 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["peer", "staged", "tcp"])
def test_worlds_on_a_device_move_and_one_that_is_damaged_on_its_way_stays_where_it_is(
    nursed: Nursed, transport: str
) -> None:
    async def run() -> tuple[Play, list[MoveReport], Play, MoveReport]:
        config = FleetConfig(transport=transport, damaged_tries=1, enforce_horizon=False)
        async with fleet_of_two(worker=WORKER, config=config, nursery=nursed.nursery) as fleet:
            play, reports = await move_under_play(fleet, 3, 3)
            await fleet.controller.open("s-2", SEED, on="worker-1")
            playing = asyncio.create_task(fleet.gateway.play("s-2", 10))
            await fleet.gateway.until("s-2", 3)
            damaged = await fleet.controller.move("s-2", "worker-2", damage=True)
            return play, reports, await playing, damaged

    play, reports, stayed, damaged = nursed.run(run())
    assert {report.transport for report in reports} == {transport}
    assert all(r.source_digest == r.destination_digest and r.source_digest.startswith("wmf1+") for r in reports)
    assert play.frames == replayed(build(1), SEED, play.lists)
    assert every_change_used_once(play)
    assert (damaged.outcome, damaged.reason) == (Outcome.ABORTED, "mismatch")
    assert stayed.frames == replayed(build(1), SEED, stayed.lists)
