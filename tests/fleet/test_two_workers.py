"""Two spawned workers, real moves under play, no HTTP."""

import asyncio

import pytest

from tests.fleet.fleet_of_two import Fleet, fleet_of_two
from tests.fleet.playing import Play, every_change_used_once, replayed
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.worker.engines import build_engine

SEED = 7
OTHER = {"worker-1": "worker-2", "worker-2": "worker-1"}


async def move_under_play(fleet: Fleet, num_moves: int, blocks_between: int) -> tuple[Play, list[MoveReport]]:
    """Open a session, play it, and move it back and forth meanwhile."""
    view = await fleet.controller.open("s-1", SEED)
    moved = asyncio.Event()
    playing = asyncio.create_task(fleet.gateway.play_while("s-1", lambda number: not moved.is_set()))
    reports, at = [], view.owner
    for number in range(num_moves):
        await fleet.gateway.until("s-1", fleet.gateway.plays["s-1"].next_block + blocks_between)
        report = await fleet.controller.move("s-1", OTHER[at])
        assert report.outcome is Outcome.COMMITTED, f"move {number}: {report}"
        reports.append(report)
        at = OTHER[at]
    moved.set()
    return await playing, reports


def unmoved(play: Play) -> list[tuple[bytes, ...]]:
    return replayed(build_engine("reference:tiny", 1), SEED, play.lists)


@pytest.mark.slow
def test_twenty_moves_under_play_leave_every_frame_as_in_a_session_that_never_moved() -> None:
    async def run() -> tuple[Play, list[MoveReport]]:
        async with fleet_of_two() as fleet:
            return await move_under_play(fleet, 20, 5)

    play, reports = asyncio.run(run())
    assert [report.epoch for report in reports] == list(range(2, 22))
    assert all(report.source_digest == report.destination_digest != "" for report in reports)
    assert [shown.block for shown in play.shown] == list(range(len(play.lists)))
    assert play.frames == unmoved(play)
    assert every_change_used_once(play)
    checked = play.checked()
    assert len(checked) >= 38  # two after each move; those after the last may be under way when the test ends
    assert all(checked)
    assert all(report.pause_s is not None and 0 < report.pause_s < 1 for report in reports)
