"""A move by replay, and a fault in each of its phases: real processes, a player, and a world that must not change."""

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import played, settled
from tests.faults.hurting import DESTINATION, SOURCE, Hurt, hurt
from tests.faults.points import Action
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import Strategy

AT_THE_SOURCE = ("heard: Begin", "at: snapshot_digest", "sent: Base", "heard: Fetched", "at: meet", "sent: Meet")
AT_THE_DESTINATION = (
    "heard: Begin",
    "heard: Base",
    "at: fetch",
    "at: install_base",
    "at: catch_up",
    "sent: Ready",
    "heard: Meet",
    "engine: in mid-step",
    "at: halt",
)
STOPPED_SOURCE = ("at: snapshot_digest", "heard: Fetched", "sent: Meet")
STOPPED_DESTINATION = ("at: fetch", "sent: Ready", "engine: in mid-step", "at: halt")


def replayed(ground: Ground, worker: str, action: Action, point: str, *, until_told: bool = False) -> Hurt:
    case = hurt(ground.house, worker, action, point, strategy=Strategy.REPLAY, until_told=until_told)
    return ground.run(case)


def moved(ground: Ground, *, damage: bool = False) -> tuple[MoveReport, str]:
    """Move a world that is played by replay; return the report, and who has it."""

    async def run() -> tuple[MoveReport, str]:
        house = ground.house
        async with played(house, SOURCE) as (session, watcher):
            report = await house.move(session, DESTINATION, strategy=Strategy.REPLAY, damage=damage)
            found = await settled(house, session, watcher, report)
        return report, found.owner

    return ground.run(run())


def test_a_world_moves_while_it_is_played_and_its_report_says_how(ground: Ground) -> None:
    report, owner = moved(ground)
    assert (report.outcome, owner, report.strategy) == (Outcome.COMMITTED, DESTINATION, "replay")
    told = {(phase.side, phase.name) for phase in report.phases}
    assert {("source", "snapshot"), ("destination", "fetch"), ("destination", "catch_up"), ("source", "meet")} <= told
    assert report.source_digest == report.destination_digest != ""


@pytest.mark.parametrize("point", AT_THE_SOURCE)
def test_a_source_killed_before_the_boundary_leaves_a_world_that_is_said_to_be_lost(ground: Ground, point: str) -> None:
    found = replayed(ground, SOURCE, Action.KILL, point).outcome
    assert found.lost_why == "worker-1 ended and no other worker holds a copy"
    assert (found.report.outcome, found.report.detail) == (Outcome.LOST, "no copy is left")


@pytest.mark.parametrize("point", AT_THE_DESTINATION)
def test_a_destination_killed_before_the_boundary_leaves_the_source_playing(ground: Ground, point: str) -> None:
    found = replayed(ground, DESTINATION, Action.KILL, point).outcome
    assert (found.owner, found.epoch) == (SOURCE, 1)
    assert (found.report.outcome, found.report.reason) == (Outcome.ABORTED, "worker_gone")
    assert found.report.detail == "worker-2 ended in the middle of the move"


@pytest.mark.parametrize("point", STOPPED_SOURCE)
def test_a_world_waits_for_a_source_that_hangs_before_the_boundary(ground: Ground, point: str) -> None:
    found = replayed(ground, SOURCE, Action.STOP, point).outcome
    assert (found.owner, found.epoch) in ((SOURCE, 1), (DESTINATION, 2))


@pytest.mark.parametrize("point", STOPPED_DESTINATION)
def test_a_source_plays_on_when_the_destination_hangs_before_the_boundary(ground: Ground, point: str) -> None:
    found = replayed(ground, DESTINATION, Action.STOP, point, until_told=True)
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 1)
    assert (found.outcome.report.outcome, found.outcome.report.runs_at) == (Outcome.ABORTED, SOURCE)


def test_an_engine_that_raises_at_the_follower_ends_the_move_and_the_player_hears_nothing_of_it(ground: Ground) -> None:
    found = replayed(ground, DESTINATION, Action.RAISE, "engine: in mid-step")
    assert (found.outcome.owner, found.outcome.epoch) == (SOURCE, 1)
    assert (found.outcome.report.outcome, found.outcome.report.reason) == (Outcome.ABORTED, "engine_failed")
    assert found.watcher.errors == []


def test_a_follower_that_computes_something_else_is_never_played_and_block_and_leaf_are_named(ground: Ground) -> None:
    found = replayed(ground, DESTINATION, Action.DRIFT, "engine: in mid-step").outcome
    assert (found.owner, found.epoch) == (SOURCE, 1)
    assert (found.report.outcome, found.report.reason) == (Outcome.ABORTED, "diverged")
    leaves, _, frames = found.report.detail.partition("; ")
    assert "memory" in leaves
    assert "its frames were others from block" in frames


def test_a_snapshot_that_is_damaged_on_its_way_each_time_is_never_installed(ground: Ground) -> None:
    report, owner = moved(ground, damage=True)
    assert (report.outcome, report.reason, owner) == (Outcome.ABORTED, "mismatch", SOURCE)
