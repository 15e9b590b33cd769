"""Both ends of a protected session's move fall silent, or who is to take over does: who goes on, when, and who is told.

Every wait of a move's conduct is as long as in production; only leases are short. So whoever waits for the conduct is
late.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import FLEET, House, equal_to_an_unmoved_world, eventually, house_of
from tests.faults.points import Action
from tests.faults.silent import DESTINATION, SOURCE, Found, Silence, protected, silenced
from tests.faults.watcher import Watcher
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import WorkerState
from worldmove.move.strategy import Strategy

SHIPPED = FleetConfig()
WORKERS = ("silent-1", "silent-2", "silent-3")
QUIET = replace(
    FLEET,
    workers=WORKERS,
    protect_every=4,
    protect_again_s=0.1,
    move_s=SHIPPED.move_s,
    doubt_s=SHIPPED.doubt_s,
    patience_s=SHIPPED.patience_s,
)
BOUND_S = 5.0
"""Much longer than the leases here (0.4 s), and much shorter than a conduct (30 s)."""
BOTH = {
    "frozen, and one hang": Silence(first=DESTINATION, point="heard: Boundary", others=(SOURCE,), action=Action.HANG),
    "proof is there": Silence(first=DESTINATION, point="heard: Proof", others=(SOURCE,)),
    "granted": Silence(first=DESTINATION, point="heard: Yours", others=(SOURCE,)),
    "catching up": Silence(first=DESTINATION, point="at: catch_up", others=(SOURCE,), strategy=Strategy.REPLAY),
}


@pytest.fixture(scope="module")
def quiet_house(ground: Ground) -> Iterator[House]:
    stack = AsyncExitStack()
    try:
        yield ground.run(stack.enter_async_context(house_of(ground.nursery, fleet=QUIET)))
    finally:
        ground.run(stack.aclose())


@pytest.mark.parametrize("case", BOTH.values(), ids=BOTH)
def test_where_both_ends_of_a_move_are_silent_its_keepers_copy_goes_on_and_all_are_told(
    ground: Ground, quiet_house: House, case: Silence
) -> None:
    found = ground.run(silenced(quiet_house, WORKERS, case, within_s=BOUND_S))
    assert found.shown_s is not None, "nothing was shown in time"
    assert found.failover is not None
    assert found.failover.num_compared == found.failover.num_replayed
    assert found.owner == found.roles["keeper"]
    assert found.told_s is not None, "the operator was not told in time"
    told_truly(found)


def told_truly(found: Found) -> None:
    """The player is told of the failover, and the operator how the move ended, and where the session is."""
    assert found.move is not None
    assert found.failover is not None
    assert found.move.runs_at == found.owner
    assert found.heard[0].startswith(f"{found.failover.source} stopped. {found.owner} computes")
    if found.failover.source == found.roles[SOURCE]:
        assert (found.move.outcome, found.move.reason) == (Outcome.ABORTED, "silent")
        assert "does not answer" in found.move.detail
    else:
        assert found.move.outcome is Outcome.COMMITTED


@asynccontextmanager
async def silent_with_its_heir(house: House, point: str) -> AsyncIterator[tuple[str, Watcher, str]]:
    """Have a session whose worker is silent, and whose keeper falls silent at a point of taking over."""
    async with protected(house, WORKERS[0]) as (session, watcher):
        heir = house.desk.view(session).keeper or ""
        house.board(heir).order(Action.STOP, point)
        house.signal(WORKERS[0], signal.SIGSTOP)
        await eventually(lambda: house.board(heir).answer == point, f"{heir} comes to {point}")
        await eventually(lambda: house.worker(heir).state is WorkerState.SUSPECTED, f"{heir} is suspected")
        yield session, watcher, heir


@pytest.mark.parametrize(("wakes", "point"), [("owner", "heard: TakeOver"), ("heir", "sent: Replayed")])
def test_where_who_takes_over_falls_silent_too_whoever_wakes_first_goes_on(
    ground: Ground, quiet_house: House, wakes: str, point: str
) -> None:
    async def run() -> None:
        async with silent_with_its_heir(quiet_house, point) as (session, watcher, heir):
            shown = len(watcher.frames)
            await asyncio.sleep(QUIET.worker_lease_s)
            assert len(watcher.frames) == shown  # nobody who answers has a copy
            assert not quiet_house.live(session).lost_why
            woken = WORKERS[0] if wakes == "owner" else heir
            quiet_house.signal(woken, signal.SIGCONT)
            until = shown + 6
            await eventually(lambda: len(watcher.frames) >= until, f"it goes on at {woken}")
            assert quiet_house.desk.view(session).owner == woken
            equal_to_an_unmoved_world(quiet_house, session, watcher)

    ground.run(run())


def test_a_silent_keeper_is_replaced_and_the_session_outlives_its_worker_meanwhile(
    ground: Ground, quiet_house: House
) -> None:
    async def run() -> None:
        async with protected(quiet_house, WORKERS[0]) as (session, watcher):
            silent = quiet_house.desk.view(session).keeper or ""
            other = next(worker for worker in WORKERS[1:] if worker != silent)
            quiet_house.signal(silent, signal.SIGSTOP)
            await eventually(lambda: quiet_house.desk.view(session).keeper == other, f"{other} keeps a snapshot")
            quiet_house.signal(WORKERS[0], signal.SIGKILL)
            until = len(watcher.frames) + 6
            await eventually(lambda: len(watcher.frames) >= until, "it goes on")
            assert quiet_house.desk.view(session).owner == other
            equal_to_an_unmoved_world(quiet_house, session, watcher)

    ground.run(run())
