"""Spawned workers and the engine of the demo: a killed owner's world goes on bit for bit as one that was not killed."""

import asyncio
import os
import signal

import pytest

from tests.fleet.fleet_of_two import Fleet, eventually, fleet_of_two
from tests.fleet.playing import Play, replayed
from tests.nursed import Nursed
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine

pytestmark = pytest.mark.slow

SEED = 5
EVERY = 8


def kept(fleet: Fleet) -> int:
    """Return the boundary of the newest snapshot that is kept; -1 where there is none."""
    block = fleet.controller.sessions()[0].kept_block
    return -1 if block is None else block


@pytest.mark.parametrize(("preset", "period_s"), [("island", 0.25), ("tiny", 0.1)])
def test_a_protected_world_goes_on_bit_for_bit_when_its_worker_is_killed(
    nursed: Nursed, preset: str, period_s: float
) -> None:
    async def run() -> tuple[Play, tuple[FailoverReport, ...]]:
        worker = WorkerConfig(engine=f"reference:{preset}")
        async with fleet_of_two(worker=worker, nursery=nursed.nursery, period_s=period_s) as fleet:
            await fleet.controller.open("s-1", SEED, on="worker-1", protect_every=EVERY)
            playing = asyncio.create_task(fleet.gateway.play("s-1", 2 * EVERY + 8))
            await eventually(lambda: kept(fleet) >= EVERY)
            await fleet.gateway.until("s-1", kept(fleet) + 3)
            os.kill(fleet.pid("worker-1"), signal.SIGKILL)
            return await playing, fleet.controller.failovers()

    play, (report,) = nursed.run(run())
    assert play.lost_why == ""
    assert (report.outcome, report.destination) == (FailoverOutcome.RESUMED, "worker-2")
    assert report.num_compared == report.num_replayed >= 3
    assert [shown.block for shown in play.shown] == list(range(len(play.lists)))
    assert play.frames == replayed(build_engine(f"reference:{preset}", 1), SEED, play.lists)
