"""More than three workers, or more slots, told to end within seconds of one another: they look for the same slots."""

import asyncio
from dataclasses import dataclass, replace

import msgspec
import pytest

from tests.simulation import node, run
from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import another, until
from tests.simulation.test_rolling_restart import played_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Workers are numbered from 1, and ``order`` says who is told when, in seconds from the beginning."""

    num_slots: int
    owners: str
    """Of one session after another: as many as all workers but one hold."""
    every: tuple[int, ...]
    """How often a snapshot of each is kept."""
    order: dict[int, float]
    boot_s: float = 2.0
    settle_s: float = 0.6
    server_killed_at: float | None = None


RESTARTS = {
    "five of two slots": Restart(
        num_slots=2,
        owners="33121524",
        every=(1, 0, 1, 0, 1, 1, 1, 1),
        order={2: 0.0, 4: 0.05, 1: 0.05, 5: 2.25, 3: 17.25},
    ),
    "five of four slots, three of them in a second": Restart(
        num_slots=4,
        owners="5434533125143245",
        every=(4, 4, 4, 4, 0, 4, 0, 4, 0, 4, 4, 4, 4, 4, 4, 0),
        order={2: 0.0, 5: 0.0, 1: 1.0, 4: 4.5, 3: 10.5},
    ),
    "three of four slots, and the server is killed": Restart(
        num_slots=4,
        owners="23131131",
        every=(40, 40, 40, 40, 0, 40, 0, 40),
        order={2: 0.0, 3: 0.05, 1: 0.05},
        boot_s=6.0,
        settle_s=0.1,
        server_killed_at=1.4,
    ),
}


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("what", RESTARTS)
def test_no_session_is_lost_where_several_that_are_to_end_look_for_the_same_slots(
    monkeypatch: pytest.MonkeyPatch, what: str, seed: int
) -> None:
    restart = RESTARTS[what]
    workers = tuple(f"worker-{number}" for number in sorted(restart.order))
    monkeypatch.setattr(run, "FLEET", replace(run.FLEET, workers=workers))
    monkeypatch.setattr(run, "WORKER", msgspec.structs.replace(run.WORKER, num_slots=restart.num_slots))
    monkeypatch.setattr(node, "BOOT_S", (restart.boot_s, restart.boot_s + 0.2))

    async def course(stage: Stage) -> None:
        await stage.server.start()
        sessions = [await another(stage, f"worker-{owner}") for owner in restart.owners]
        house = await stage.server.serving()
        for name, every in zip(sessions, restart.every, strict=True):
            house.controller.protect(name, every)
        await asyncio.sleep(restart.settle_s)
        killing = asyncio.ensure_future(killed_and_started(stage, restart.server_killed_at))
        begun = stage.loop.time()
        for number, at_s in restart.order.items():
            await asyncio.sleep(begun + at_s - stage.loop.time())
            stage.hosts.nodes[f"worker-{number}"].terminate()
        await killing
        await until(stage, lambda: are_anew(stage), "each is started anew", within_s=60.0)
        await played_on(stage, sessions)

    assert directed(course, seed=seed).trace.counts["lost"] == 0


async def killed_and_started(stage: Stage, at_s: float | None) -> None:
    if at_s is not None:
        await asyncio.sleep(at_s)
        stage.server.kill()
        await asyncio.sleep(0.5)
        await stage.server.start()


def are_anew(stage: Stage) -> bool:
    """Whether each has been started anew, and once more where it came back without a server."""
    return all(worker.incarnation > 1 and worker.is_ready for worker in stage.hosts.nodes.values())
