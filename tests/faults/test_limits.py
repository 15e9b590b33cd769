"""A worker at the limit of its memory, and a wall clock that jumps."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.conftest import Ground
from tests.faults.house import ARENA_BYTES, House, played, settled
from tests.faults.hurting import DESTINATION, SOURCE, hurt
from tests.faults.points import Action
from worldmove.fleet.reports import MoveReport, Outcome

INFINITE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@contextmanager
def almost_no_more_memory(pid: int) -> Iterator[None]:
    """Let a process have half an arena's address space more than it has, and no more."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ARENA_BYTES // 2
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_AS, INFINITE)


async def moved_without_memory(house: House) -> MoveReport:
    """Try to move to a worker that cannot map the source's memory; then, with memory, move there."""
    async with played(house, SOURCE) as (session, watcher):
        for to in (DESTINATION, SOURCE):  # so that its threads, and what else is made once, are there
            assert (await house.move(session, to)).outcome is Outcome.COMMITTED
        pid = house.worker(DESTINATION).pid
        assert pid is not None
        with almost_no_more_memory(pid):
            tried = await house.move(session, DESTINATION)
            assert (await settled(house, session, watcher, tried)).owner == SOURCE
        assert (await house.move(session, DESTINATION)).outcome is Outcome.COMMITTED
        assert house.worker(DESTINATION).pid == pid
        await settled(house, session, watcher, tried)
    return tried


def test_a_move_to_a_worker_without_memory_is_refused_and_says_so(ground: Ground) -> None:
    report = ground.run(moved_without_memory(ground.house))
    assert (report.outcome, report.reason) == (Outcome.REFUSED, "transport")
    assert "cannot be mapped: [Errno 12]" in report.detail


def test_a_wall_clock_that_jumps_changes_what_a_report_is_dated_and_nothing_else(ground: Ground) -> None:
    async def run(jump_s: float) -> MoveReport:
        async def jump() -> None:
            ground.house.wall_clock_offset_s += jump_s

        before = ground.house.wall_clock_offset_s
        found = await hurt(ground.house, DESTINATION, Action.STOP, "at: land", meanwhile=jump)
        assert ground.house.wall_clock_offset_s == before + jump_s
        assert found.outcome.owner == DESTINATION
        return found.outcome.report

    back, forward = ground.run(run(-86_400.0)), ground.run(run(+172_800.0))
    for report in (back, forward):
        assert report.outcome is Outcome.COMMITTED
        assert 0 < report.took_s < 5
        assert report.pause_s is not None
        assert 0 < report.pause_s < 5
        assert all(phase.start_s <= phase.end_s for phase in report.phases)
    assert back.started_at - forward.started_at > 80_000  # the second began after the first clock was set back
    ground.house.wall_clock_offset_s = 0.0
