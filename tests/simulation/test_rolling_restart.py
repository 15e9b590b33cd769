"""Every worker is told to end, one after another, however soon: each comes back, and no session is lost."""

import asyncio
from dataclasses import replace

import pytest

from tests.simulation import node, run
from tests.simulation.course import Stage, close
from tests.simulation.run import WORKERS, directed
from tests.simulation.test_protection import another, until

START_S = 2.0
MAY_TAKE_S = 14.0
"""Beside the gaps; less than a drain takes that waits in vain."""
PLAYED = [
    ((1, 1), 4),
    ((0, 3), 4),
    ((2, 1), 4),
    ((1, 1, 1), 4),
    ((0, 3, 0), 4),
    ((2, 1), 0),
    ((2, 2, 2), 0),
    ((2, 2, 2), 4),
]
"""How many sessions each worker of three slots plays, as many at most as all but one hold, and whether protected."""
ARE_TIGHT = [((2, 1), 4), ((2, 2, 2), 4)]
"""Here others' snapshots take all room: one that has none takes a slot of theirs, and one that has goes on from it."""


@pytest.fixture(autouse=True)
def slow_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "BOOT_S", (START_S, START_S + 0.2))


async def opened(stage: Stage, played: tuple[int, ...], every: int) -> list[str]:
    """Open the sessions, and then have them protected: room for snapshots is what is left."""
    await stage.server.start()
    placed = zip(WORKERS, played, strict=False)
    sessions = [await another(stage, name) for name, num in placed for _ in range(num)]
    house = await stage.server.serving()
    for name in sessions:
        house.controller.protect(name, every)
    await asyncio.sleep(2.0)
    return sessions


async def started_anew(stage: Stage, workers: tuple[str, ...]) -> None:
    def is_anew() -> bool:
        nodes = [stage.hosts.nodes[name] for name in workers]
        return all(worker.incarnation == 2 and worker.is_ready for worker in nodes)

    await until(stage, is_anew, "each is started anew", within_s=60.0)


async def played_on(stage: Stage, sessions: list[str]) -> None:
    played = [stage.watch.played[name] for name in sessions]
    before = [one.next_block for one in played]

    def all_go_on() -> bool:
        return all(one.next_block >= block + 8 for one, block in zip(played, before, strict=True))

    await until(stage, all_go_on, "every session is played on")
    stage.watch.is_ending = True
    for tab in stage.tabs:
        await tab.end()
    for name in sessions:
        await close(stage, name)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("gap_s", [0.0, 1.0, 3.5, 6.0, 25.0])
@pytest.mark.parametrize(("played", "every"), PLAYED)
def test_no_session_is_lost_when_every_worker_is_started_anew_one_after_another(
    monkeypatch: pytest.MonkeyPatch, played: tuple[int, ...], every: int, gap_s: float, order: int
) -> None:
    workers = WORKERS[: len(played)]
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, workers=workers))

    async def course(stage: Stage) -> None:
        sessions = await opened(stage, played, every)
        begun = stage.loop.time()
        for number, name in enumerate(workers[::order]):
            await asyncio.sleep(gap_s if number else 0.0)
            stage.hosts.nodes[name].terminate()
        await started_anew(stage, workers)
        took.append(stage.loop.time() - begun - gap_s * (len(workers) - 1))
        await played_on(stage, sessions)

    took: list[float] = []
    assert directed(course).trace.counts["lost"] == 0
    assert took[0] < MAY_TAKE_S or (played, every) in ARE_TIGHT


@pytest.mark.parametrize("played", [(1, 1), (2, 1), (2, 2, 2)])
def test_no_session_is_lost_when_every_worker_was_told_to_end_while_no_server_was_there(
    monkeypatch: pytest.MonkeyPatch, played: tuple[int, ...]
) -> None:
    """The next one hears of all of them at once, before it has moved anything."""
    workers = WORKERS[: len(played)]
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, workers=workers))

    async def course(stage: Stage) -> None:
        sessions = await opened(stage, played, 0)
        stage.server.kill()
        await asyncio.sleep(0.5)
        for name in workers:
            stage.hosts.nodes[name].terminate()
        await asyncio.sleep(0.5)
        await stage.server.start()
        await started_anew(stage, workers)
        await played_on(stage, sessions)

    assert directed(course).trace.counts["lost"] == 0
