"""The link of a worker cut, shut in one direction, or carrying one way only, in the middle of a move."""

import asyncio
from collections.abc import Callable

import pytest

from tests.faults.cables import Cable, Way
from tests.faults.conftest import Ground
from tests.faults.house import Outcome, eventually, played, settled
from tests.faults.hurting import DESTINATION, SOURCE, Hurt, hurt
from tests.faults.points import Action
from worldmove.fleet.ports import Owner
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.reports import Outcome as Told
from worldmove.fleet.views import SessionState, WorkerState

POINTS = (
    (SOURCE, "heard: Start"),
    (SOURCE, "sent: Boundary"),
    (SOURCE, "sent: Proof"),
    (DESTINATION, "sent: Reserved"),
    (DESTINATION, "sent: Landed"),
    (DESTINATION, "sent: CommitAttempt"),
)
"""Ends, and points at which the newest message may be lost with the link."""
BREAKS: dict[str, Callable[[Cable], None]] = {
    "cut": Cable.cut,
    "shut to the worker": lambda cable: cable.shut(Way.DOWN),
    "shut to the server": lambda cable: cable.shut(Way.UP),
}
CASES = (
    *((worker, point, "cut") for worker, point in POINTS),
    *((worker, point, how) for worker, point in (POINTS[2], POINTS[5]) for how in BREAKS if how != "cut"),
)


def broken(ground: Ground, worker: str, point: str, how: str) -> Hurt:
    """Break a worker's link while it stands at a point."""
    cable = ground.house.cables.of(worker)
    before = cable.num_connections

    async def break_it() -> None:
        BREAKS[how](cable)

    found = ground.run(hurt(ground.house, worker, Action.STOP, point, meanwhile=break_it))
    assert cable.num_connections > before
    return found


@pytest.mark.parametrize(("worker", "point", "how"), CASES)
def test_a_link_that_breaks_in_a_move_is_made_anew_and_the_world_goes_on(
    ground: Ground, worker: str, point: str, how: str
) -> None:
    found = broken(ground, worker, point, how).outcome
    assert not found.lost_why
    assert found.report.outcome is not Told.LOST


def test_a_destination_that_asked_and_hears_nothing_is_replaced_though_it_speaks(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = ground.house
    cable, tell = house.cables.of(DESTINATION), house.gateway.owned

    def deafen(session: str, owner: Owner) -> None:
        """Its commit is granted, and not answered yet: the destination hears nothing from now on."""
        if (owner.worker, owner.epoch) == (DESTINATION, 2):
            cable.hold(Way.DOWN)
        tell(session, owner)

    async def run() -> Outcome:
        async with played(house, SOURCE) as (session, watcher):
            moving = asyncio.create_task(house.move(session, DESTINATION))
            await eventually(lambda: any((row.owner, row.epoch) == (SOURCE, 3) for row in house.controller.sessions()))
            cable.mend()
            return await settled(house, session, watcher, await moving)

    monkeypatch.setattr(house.gateway, "owned", deafen)
    found = ground.run(run())
    assert (found.owner, found.epoch) == (SOURCE, 3)
    assert (found.report.outcome, found.report.reason) == (Told.ABORTED, "reclaimed")


@pytest.mark.parametrize("way", list(Way))
def test_an_owner_whose_link_carries_one_way_is_suspected_and_plays_on_when_it_carries_both(
    ground: Ground, way: Way
) -> None:
    async def run() -> tuple[SessionState, str]:
        house = ground.house
        async with played(house, SOURCE) as (session, watcher):
            house.cables.of(SOURCE).hold(way)
            await eventually(lambda: house.worker(SOURCE).state is WorkerState.SUSPECTED)
            asleep = house.desk.view(session).state
            house.cables.of(SOURCE).mend()
            report = await _moved_once_it_answers(ground, session)
            found = await settled(house, session, watcher, report)
        return asleep, found.owner

    assert ground.run(run()) == (SessionState.IN_DOUBT, DESTINATION)


async def _moved_once_it_answers(ground: Ground, session: str) -> MoveReport:
    await ground.house.all_answer()
    report = await ground.house.move(session, DESTINATION)
    assert report.outcome is Told.COMMITTED
    return report
