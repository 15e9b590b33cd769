"""A move whose state goes ahead in rounds, and a fault in each of its phases: real processes, and a player."""

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import played, settled
from tests.faults.hurting import DESTINATION, SOURCE, hurt
from tests.faults.points import Action
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import Strategy

AT_THE_DESTINATION = ("heard: Base", "at: rounds", "sent: Ready", "heard: Boundary", "at: reconcile", "at: moves")


def moved(ground: Ground, strategy: Strategy, *, damage: bool = False) -> tuple[MoveReport, str]:
    """Move a world that is played; return the report, and who has it."""

    async def run() -> tuple[MoveReport, str]:
        house = ground.house
        async with played(house, SOURCE) as (session, watcher):
            report = await house.move(session, DESTINATION, strategy=strategy, damage=damage)
            found = await settled(house, session, watcher, report)
        return report, found.owner

    return ground.run(run())


@pytest.mark.parametrize("strategy", [Strategy.PRE_COPY, Strategy.STREAMING])
def test_a_world_moves_in_rounds_while_it_is_played_and_its_report_says_how_much_came_when(
    ground: Ground, strategy: Strategy
) -> None:
    report, owner = moved(ground, strategy)
    assert (report.outcome, owner, report.strategy) == (Outcome.COMMITTED, DESTINATION, strategy.value)
    told = {(phase.side, phase.name) for phase in report.phases}
    assert {("destination", "rounds"), ("source", "rows"), ("destination", "reconcile")} <= told
    assert report.in_place_bytes + report.moved_bytes + report.pulled_bytes == report.num_bytes > 0
    assert report.plain == ""
    assert report.source_digest == report.destination_digest != ""


def test_what_a_path_damages_is_found(ground: Ground) -> None:
    report, owner = moved(ground, Strategy.PRE_COPY, damage=True)
    assert (report.outcome, owner) in ((Outcome.ABORTED, SOURCE), (Outcome.COMMITTED, DESTINATION))
    assert report.outcome is Outcome.ABORTED or report.pulled_bytes == 0


@pytest.mark.parametrize("point", AT_THE_DESTINATION)
def test_a_destination_killed_leaves_the_source_playing(ground: Ground, point: str) -> None:
    case = hurt(ground.house, DESTINATION, Action.KILL, point, strategy=Strategy.PRE_COPY)
    found = ground.run(case).outcome
    assert (found.owner, found.epoch) == (SOURCE, 1)
    assert (found.report.outcome, found.report.reason) == (Outcome.ABORTED, "worker_gone")


@pytest.mark.parametrize("point", ["heard: Begin", "sent: Base", "at: rows", "sent: Boundary"])
def test_a_world_waits_for_a_source_that_hangs(ground: Ground, point: str) -> None:
    found = ground.run(hurt(ground.house, SOURCE, Action.STOP, point, strategy=Strategy.PRE_COPY)).outcome
    assert (found.owner, found.epoch) in ((SOURCE, 1), (DESTINATION, 2))
