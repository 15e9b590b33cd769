"""Processes that die at the worst moments: the world goes on, or is said to be lost, and never anything else."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.fleet.fleet_of_two import Fleet, eventually, fleet_of_two
from tests.fleet.playing import Play, ShownBlock, replayed
from tests.nursed import Nursed
from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import SessionState, WorkerState
from worldmove.worker.engines import build_engine

pytestmark = pytest.mark.slow

SEED = 11
BLOCKS_AFTER = 12


async def opened(fleet: Fleet) -> None:
    await fleet.controller.open("s-1", SEED, on="worker-1")


def kill(fleet: Fleet, worker: str) -> None:
    os.kill(fleet.pid(worker), signal.SIGKILL)


def kill_at_first_block_of(fleet: Fleet, epoch: int, worker: str) -> None:
    """Kill a worker the moment the first block of an epoch is shown."""
    killed: list[int] = []

    def look(session: str, shown: ShownBlock) -> None:
        if shown.epoch == epoch and not killed:
            killed.append(shown.block)
            kill(fleet, worker)

    fleet.gateway.on_shown = look


async def play_and_move(fleet: Fleet) -> tuple[Play, MoveReport]:
    """Play, move the session meanwhile, and play some blocks more."""
    moved_at: list[int] = []

    def going_on(number: int) -> bool:
        return not moved_at or number < moved_at[0] + BLOCKS_AFTER

    playing = asyncio.create_task(fleet.gateway.play_while("s-1", going_on))
    await fleet.gateway.until("s-1", 6)
    report = await fleet.controller.move("s-1", "worker-2")
    moved_at.append(len(fleet.gateway.plays["s-1"].lists))
    return await playing, report


def went_on(play: Play) -> bool:
    """Whether every block was shown once, in order, and is what an unmoved session makes of the same lists."""
    in_order = [shown.block for shown in play.shown] == list(range(len(play.lists)))
    return in_order and play.frames == replayed(build_engine("reference:tiny", 1), SEED, play.lists)


def test_the_world_goes_on_when_its_old_worker_is_killed_at_the_first_block_shown(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            kill_at_first_block_of(fleet, 2, "worker-1")
            return await play_and_move(fleet)

    play, report = nursed.run(run())
    assert report.outcome is Outcome.COMMITTED
    assert play.shown[-1].epoch == 2
    assert went_on(play)


def test_the_source_goes_on_when_the_destination_is_killed_before_the_commit(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            fleet.gateway.on_phase = lambda phase: kill(fleet, "worker-2") if phase == "transfer" else None
            return await play_and_move(fleet)

    play, report = nursed.run(run())
    assert report.outcome is Outcome.ABORTED
    assert report.epoch == play.shown[-1].epoch == 1
    assert went_on(play)


def test_a_retired_copy_takes_over_when_the_new_owner_is_killed_at_its_first_block(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            kill_at_first_block_of(fleet, 2, "worker-2")
            return await play_and_move(fleet)

    play, _ = nursed.run(run())
    assert play.lost_why == ""
    assert play.shown[-1].epoch == 3
    assert went_on(play)


def test_the_source_killed_before_it_has_frozen_leaves_a_world_that_is_lost_and_says_so(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport, SessionState]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            fleet.gateway.on_phase = lambda phase: kill(fleet, "worker-1") if phase == "transfer" else None
            play, report = await play_and_move(fleet)
            return play, report, fleet.controller.sessions()[0].state

    play, report, state = nursed.run(run())
    assert (report.outcome, report.runs_at, state) == (Outcome.LOST, None, SessionState.LOST)
    assert play.lost_why == "worker-1 ended and no other worker holds a copy"


def test_the_source_killed_before_the_start_is_reported_as_lost_and_nobody_is_said_to_go_on(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            fleet.gateway.on_phase = lambda phase: kill(fleet, "worker-1") if phase == "prepare" else None
            return await play_and_move(fleet)

    play, report = nursed.run(run())
    assert (report.outcome, report.runs_at) == (Outcome.LOST, None)
    assert "worker-1 ended" in play.lost_why


def test_a_destination_that_is_stopped_in_mid_move_is_an_abort_and_leaves_no_doubt(nursed: Nursed) -> None:
    async def run() -> tuple[Play, MoveReport, SessionState]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            pid = fleet.pid("worker-2")
            fleet.gateway.on_phase = lambda phase: os.kill(pid, signal.SIGSTOP) if phase == "transfer" else None
            try:
                play, report = await play_and_move(fleet)
                return play, report, fleet.controller.sessions()[0].state
            finally:
                os.kill(pid, signal.SIGCONT)

    play, report, state = nursed.run(run())
    assert (report.outcome, report.runs_at, state) == (Outcome.ABORTED, "worker-1", SessionState.LIVE)
    assert report.took_s < 6.0
    assert went_on(play)


def test_a_session_is_lost_when_its_only_worker_is_killed_and_the_worker_comes_back_empty(nursed: Nursed) -> None:
    restarting = FleetConfig(restart=True, restart_after_s=0.1)

    async def run() -> tuple[Play, list[tuple[WorkerState, int, int]]]:
        async with fleet_of_two(config=restarting, nursery=nursed.nursery) as fleet:
            await opened(fleet)
            playing = asyncio.create_task(fleet.gateway.play("s-1", 24))
            await fleet.gateway.until("s-1", 4)
            kill(fleet, "worker-1")
            play = await playing
            await eventually(lambda: fleet.controller.workers()[0].state is WorkerState.READY)
            with pytest.raises(UserError, match="lost"):
                await fleet.controller.move("s-1", "worker-2")
            return play, [(w.state, w.incarnation, w.slots_free) for w in fleet.controller.workers()]

    play, workers = nursed.run(run())
    assert "worker-1 ended" in play.lost_why
    assert workers == [(WorkerState.READY, 2, 3), (WorkerState.READY, 1, 3)]


def test_stopping_ends_every_process_with_status_0_and_leaves_no_folder(nursed: Nursed) -> None:
    async def run() -> tuple[list[int], Path | None, list[object]]:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            await opened(fleet)
            await fleet.gateway.play("s-1", 3)
            pids, folder = [fleet.pid("worker-1"), fleet.pid("worker-2")], fleet.hosts.run_dir
        return pids, folder, [fields["status"] for event, fields in fleet.logged if event == "worker_gone"]

    pids, folder, statuses = nursed.run(run())
    assert statuses == [0, 0]
    assert folder is not None
    assert not folder.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
