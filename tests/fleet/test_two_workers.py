"""Two real workers, real moves under play, no HTTP."""

import asyncio

import pytest

from tests.fleet.fleet_of_two import Fleet, fleet_of_two
from tests.fleet.playing import Play, every_change_used_once, replayed
from tests.nursed import Nursed
from worldmove.fleet.config import FleetConfig
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
def test_worlds_move_over_tcp_and_one_that_is_damaged_on_its_way_stays_where_it_is(nursed: Nursed) -> None:
    async def run() -> tuple[Play, list[MoveReport], Play, MoveReport]:
        async with fleet_of_two(config=FleetConfig(transport="tcp", damaged_tries=2), nursery=nursed.nursery) as fleet:
            play, reports = await move_under_play(fleet, 4, 3)
            await fleet.controller.open("s-2", SEED, on="worker-1")
            playing = asyncio.create_task(fleet.gateway.play("s-2", 12))
            await fleet.gateway.until("s-2", 3)
            damaged = await fleet.controller.move("s-2", "worker-2", damage=True)
            return play, reports, await playing, damaged

    play, reports, stayed, damaged = nursed.run(run())
    assert {report.transport for report in reports} == {"tcp"}
    assert all(report.source_digest == report.destination_digest != "" for report in reports)
    expected = [report.expected for report in reports if report.expected is not None]
    assert [told.strategy for told in expected] == [report.strategy for report in reports]
    assert all(0 < told.pause_s == pytest.approx(sum(s for _, s in told.terms)) for told in expected)
    assert play.frames == unmoved(play)
    assert every_change_used_once(play)
    assert (damaged.outcome, damaged.reason, damaged.transport) == (Outcome.ABORTED, "mismatch", "corrupting-tcp")
    assert stayed.frames == unmoved(stayed)
