"""kill -9 of real processes around a protected session: it goes on exactly, or is lost with both of its copies."""

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import FLEET, House, equal_to_an_unmoved_world, eventually, house_of, played
from tests.faults.points import Action
from tests.faults.watcher import Watcher
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport

OWNER = "trio-1"
TRIO = replace(
    FLEET,
    workers=(OWNER, "trio-2", "trio-3"),
    protect_every=4,
    snapshot_s=1.5,
    protect_again_s=0.1,
    leave_s=4.0,
)
"""Three workers of names of their own: a board is a worker's, whichever server it has."""
IN_A_SNAPSHOT = ("heard: TakeSnapshot", "sent: SnapshotTaken", "heard: DropSnapshot")
IN_A_MOVE = ("heard: Prepare", "heard: Start", "sent: Boundary", "heard: Landed", "sent: Proof")


@pytest.fixture(scope="module")
def trio(ground: Ground) -> Iterator[House]:
    stack = AsyncExitStack()
    try:
        yield ground.run(stack.enter_async_context(house_of(ground.nursery, fleet=TRIO)))
    finally:
        ground.run(stack.aclose())


def keeper(house: House, session: str) -> str:
    return house.desk.view(session).keeper or ""


@asynccontextmanager
async def protected(house: House) -> AsyncIterator[tuple[str, Watcher]]:
    """Have a session under play at the first worker, of which another one keeps a snapshot."""
    async with played(house, OWNER) as (session, watcher):
        await eventually(lambda: bool(keeper(house, session)), "a snapshot is kept")
        yield session, watcher


async def goes_on(house: House, session: str, watcher: Watcher, more: int = 10) -> None:
    """Check that it goes on, is protected again, and has shown what a world shows that nobody has killed."""
    until = len(watcher.frames) + more
    await eventually(lambda: len(watcher.frames) >= until, f"it goes on: {house.live(session).lost_why}")
    await eventually(lambda: keeper(house, session) not in ("", house.desk.view(session).owner), "it is kept elsewhere")
    equal_to_an_unmoved_world(house, session, watcher)


def newest(house: House) -> FailoverReport:
    return house.controller.failovers()[-1]


@pytest.mark.parametrize("passes", [0, 3])
@pytest.mark.parametrize("point", IN_A_SNAPSHOT)
def test_an_owner_killed_while_its_snapshot_is_taken_is_not_missed(
    ground: Ground, trio: House, point: str, passes: int
) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            trio.board(OWNER).order(Action.KILL, point, passes=passes)
            await eventually(lambda: trio.board(OWNER).answer == point, f"{OWNER} comes to {point}")
            await goes_on(trio, session, watcher)
            assert trio.desk.view(session).owner != OWNER

    ground.run(run())
    assert newest(trio).outcome is FailoverOutcome.RESUMED
    assert newest(trio).num_compared == newest(trio).num_replayed


@pytest.mark.parametrize("point", IN_A_MOVE)
def test_an_owner_killed_in_a_move_is_not_missed(ground: Ground, trio: House, point: str) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            trio.board(OWNER).order(Action.KILL, point)
            await trio.move(session, "trio-2")
            await eventually(lambda: trio.board(OWNER).answer == point, f"{OWNER} comes to {point}")
            await goes_on(trio, session, watcher)

    ground.run(run())


def test_a_session_that_is_moved_to_its_keeper_outlives_that_worker_too(ground: Ground, trio: House) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            to = keeper(trio, session)
            await trio.move(session, to)
            trio.signal(to, signal.SIGKILL)
            await goes_on(trio, session, watcher)

    ground.run(run())


@pytest.mark.parametrize("point", ["heard: Expect", "heard: Keep", "sent: Kept"])
def test_a_keeper_killed_at_any_point_is_replaced(ground: Ground, trio: House, point: str) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            keepers = [keeper(trio, session)]
            if point == "heard: Expect":
                trio.signal(keepers[0], signal.SIGKILL)
                # Where it is back before another is looked for, the same worker may be asked again.
                keepers = [name for name in TRIO.workers if name != OWNER]
            boards = [trio.board(name) for name in keepers]
            for board in boards:
                board.order(Action.KILL, point)
            await eventually(lambda: point in [board.answer for board in boards], f"one of {keepers} comes to {point}")
            for board in boards:
                board.clear()
            await goes_on(trio, session, watcher)
            assert trio.desk.view(session).owner == OWNER

    ground.run(run())


@pytest.mark.parametrize("point", ["heard: Revive", "heard: TakeOver", "sent: Replayed"])
def test_a_keeper_killed_in_the_failover_leaves_a_session_that_is_said_to_be_lost(
    ground: Ground, trio: House, point: str
) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            await eventually(lambda: len(watcher.frames) % TRIO.protect_every == 2, "there are blocks to replay")
            heir = keeper(trio, session)
            trio.board(heir).order(Action.KILL, point)
            trio.signal(OWNER, signal.SIGKILL)
            await eventually(lambda: bool(watcher.lost), "it is said to be lost")
            assert "no other worker holds a copy" in watcher.lost[0]
            equal_to_an_unmoved_world(trio, session, watcher)
            told = [report.outcome for report in trio.controller.failovers() if report.session == session]
            assert told == [FailoverOutcome.ENDED] * (point != "heard: Revive")  # by then it was granted nothing yet

    ground.run(run())


def test_a_worker_that_gets_sigterm_has_its_session_moved_away_first_and_nothing_is_computed_again(
    ground: Ground, trio: House
) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            before, pid = len(trio.controller.failovers()), trio.worker(OWNER).pid
            trio.signal(OWNER, signal.SIGTERM)
            await eventually(
                lambda: trio.worker(OWNER).pid not in (pid, None), "its process has ended, and another is there"
            )
            assert trio.desk.view(session).owner != OWNER
            await goes_on(trio, session, watcher)
            assert len(trio.controller.failovers()) == before

    ground.run(run())


def test_a_worker_that_hangs_is_replaced_by_its_sessions_keeper_and_fenced_when_it_wakes(
    ground: Ground, trio: House
) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            trio.signal(OWNER, signal.SIGSTOP)
            try:
                await eventually(lambda: trio.desk.view(session).owner != OWNER, "another worker has it")
                await goes_on(trio, session, watcher, more=5)
            finally:
                trio.signal(OWNER, signal.SIGCONT)
            await goes_on(trio, session, watcher)

    ground.run(run())


def test_an_engine_that_raises_ends_its_copy_and_the_session_goes_on_up_to_that_block(
    ground: Ground, trio: House
) -> None:
    async def run() -> None:
        async with protected(trio) as (session, watcher):
            trio.board(OWNER).order(Action.RAISE, "engine: in mid-step", passes=5)
            await eventually(lambda: trio.desk.view(session).owner != OWNER, "another worker has it")
            await goes_on(trio, session, watcher)

    ground.run(run())
