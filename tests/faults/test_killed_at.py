"""kill -9 of either end of a move, at every point of it."""

import asyncio

import pytest

from tests.faults.conftest import Ground
from tests.faults.hurting import DESTINATION, SOURCE, hurt
from tests.faults.phases import GRANTED, ONLY_COPY, PROVEN, UNPROVEN
from tests.faults.points import Action
from worldmove.fleet.reports import Outcome


@pytest.mark.parametrize("point", ONLY_COPY)
def test_a_source_killed_with_the_only_copy_leaves_a_world_that_is_said_to_be_lost(ground: Ground, point: str) -> None:
    found = ground.run(hurt(ground.house, SOURCE, Action.KILL, point)).outcome
    assert found.lost_why == "worker-1 ended and no other worker holds a copy"
    assert (found.report.outcome, found.report.detail) == (Outcome.LOST, "no copy is left")


def test_a_source_whose_death_is_heard_after_its_destination_could_not_reach_it_is_no_refusal(ground: Ground) -> None:
    ends = ground.nursery.tells_of_ends

    async def late() -> None:
        await asyncio.sleep(0.2)  # a hundred times what a destination takes to say that nobody answers
        ends.set()

    ends.clear()
    try:
        found = ground.run(hurt(ground.house, SOURCE, Action.KILL, "sent: Prepared", meanwhile=late)).outcome
    finally:
        ends.set()
    assert found.lost_why == "worker-1 ended and no other worker holds a copy"
    assert (found.report.outcome, found.report.detail) == (Outcome.LOST, "no copy is left")


@pytest.mark.parametrize("point", PROVEN)
def test_a_source_killed_after_its_proof_is_not_missed(ground: Ground, point: str) -> None:
    found = ground.run(hurt(ground.house, SOURCE, Action.KILL, point)).outcome
    assert (found.owner, found.epoch) == (DESTINATION, 2)
    assert (found.report.outcome, found.report.detail) == (Outcome.COMMITTED, "Moved to worker-2")


@pytest.mark.parametrize("point", UNPROVEN)
def test_a_destination_killed_before_it_asked_leaves_the_source_playing(ground: Ground, point: str) -> None:
    found = ground.run(hurt(ground.house, DESTINATION, Action.KILL, point)).outcome
    assert (found.owner, found.epoch) == (SOURCE, 1)
    assert (found.report.outcome, found.report.detail) in (
        (Outcome.REFUSED, "worker-2 ended"),
        (Outcome.ABORTED, "worker-2 ended in the middle of the move"),
    )


@pytest.mark.parametrize("point", GRANTED)
def test_a_destination_killed_after_its_grant_gives_the_world_back_to_the_source(ground: Ground, point: str) -> None:
    found = ground.run(hurt(ground.house, DESTINATION, Action.KILL, point)).outcome
    assert (found.owner, found.epoch) == (SOURCE, 3)
    went_on = "worker-2 ended or did not answer before it had shown a block, and worker-1 went on"
    assert (found.report.outcome, found.report.detail) in (
        (Outcome.ABORTED, went_on),
        (Outcome.COMMITTED, "Moved to worker-2"),
    )
