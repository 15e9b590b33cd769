"""What a user may ask of the controller, on one fleet of two real workers."""

import asyncio
from collections.abc import Awaitable

import pytest

from tests.fleet.fleet_of_two import Fleet, eventually, fleet_of_two
from tests.fleet.playing import replayed
from tests.nursed import Nursed
from worldmove.errors import UserError
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionView
from worldmove.worker.engines import build_engine

pytestmark = pytest.mark.slow


async def why(asked: Awaitable[object]) -> str:
    """Return the word for which a request was refused."""
    with pytest.raises(UserError) as refused:
        await asked
    return refused.value.code


def session(fleet: Fleet, name: str) -> SessionView:
    return next(view for view in fleet.controller.sessions() if view.name == name)


async def damaged(fleet: Fleet) -> None:
    """A path that damages every try moves nothing, and the world plays on."""
    await fleet.controller.open("damaged", 3, on="worker-1")
    playing = asyncio.create_task(fleet.gateway.play("damaged", 16))
    await fleet.gateway.until("damaged", 3)
    report = await fleet.controller.move("damaged", "worker-2", damage=True)
    play = await playing
    assert (report.outcome, report.tries) == (Outcome.ABORTED, 3)
    assert report.detail == "One part arrived damaged (3 tries)"
    assert session(fleet, "damaged").owner == "worker-1"
    assert play.frames == replayed(build_engine("reference:tiny", 1), 3, play.lists)
    assert all(worker.slots_quarantined == 0 for worker in fleet.controller.workers())


async def thrown_away(fleet: Fleet) -> None:
    """A world rebuilt from one picture plays beside the session and leaves it alone."""
    spec = build_engine("reference:tiny", 1).spec
    picture = bytes(spec.height * spec.width * 3)
    copy = await fleet.controller.open_throwaway("damaged", picture, 1)
    assert copy.name.startswith("damaged~r")
    assert copy.throwaway
    play = await fleet.gateway.play(copy.name, 3)
    assert [shown.epoch for shown in play.shown] == [0, 0, 0]
    assert await why(fleet.controller.move(copy.name, "worker-2")) == "throwaway"
    await fleet.controller.close(copy.name)
    assert [view.name for view in fleet.controller.sessions()] == ["damaged"]


async def mistaken(fleet: Fleet) -> None:
    """A request that makes no sense is refused in a word, and changes nothing."""
    before = fleet.controller.sessions()
    assert await why(fleet.controller.open("damaged", 1)) == "name_taken"
    assert await why(fleet.controller.move("damaged", "worker-1")) == "already_there"
    assert await why(fleet.controller.move("damaged", "worker-9")) == "unknown_worker"
    assert await why(fleet.controller.move("nobody", "worker-2")) == "unknown_session"
    assert await why(fleet.controller.cancel("damaged")) == "not_moving"
    assert await why(fleet.controller.open_throwaway("damaged", b"short", 1)) == "usage"
    assert fleet.controller.sessions() == before


async def too_late(fleet: Fleet) -> None:
    """A move that would make the next block late is refused before a byte travels."""
    fleet.gateway.horizon = 0.0
    report = await fleet.controller.move("damaged", "worker-2")
    fleet.gateway.horizon = float("inf")
    assert (report.outcome, report.reason, report.num_bytes) == (Outcome.REFUSED, "too_slow", 0)
    assert session(fleet, "damaged").owner == "worker-1"
    assert session(fleet, "damaged").epoch == 1


async def cancelled(fleet: Fleet) -> None:
    """A move that is cancelled while it waits for the block boundary leaves the session where it is."""
    moving = asyncio.create_task(fleet.controller.move("damaged", "worker-2"))
    cancelled = asyncio.Event()

    def look(phase: str) -> None:
        if phase == "transfer":
            cancelled.set()

    fleet.gateway.on_phase = look
    await cancelled.wait()
    await fleet.controller.cancel("damaged")
    report = await moving
    ends = (report.outcome, report.reason, session(fleet, "damaged").owner)
    assert ends in ((Outcome.ABORTED, "cancelled", "worker-1"), (Outcome.COMMITTED, "done", "worker-2"))


async def disowned(fleet: Fleet) -> None:
    """A world whose owner sends what can never be shown is lost in words where there is no other copy, and alone."""
    await fleet.controller.open("odd", 3, on="worker-1")
    await fleet.gateway.play("odd", 2)
    before = session(fleet, "damaged")
    fleet.controller.malformed("odd", 7, "of another epoch")
    fleet.controller.malformed("odd", 1, "its block 2 has 3 bytes of pictures")
    await eventually(lambda: bool(fleet.gateway.plays["odd"].lost_why))
    why = "worker-1: its block 2 has 3 bytes of pictures and no other worker holds a copy"
    assert fleet.gateway.plays["odd"].lost_why == why
    assert fleet.gateway.plays["odd"].closed_epoch == 1
    await fleet.controller.close("odd")
    assert session(fleet, "damaged") == before


async def full(fleet: Fleet) -> None:
    """When every slot is taken, a session is refused; a closed one makes room again."""
    names: list[str] = []
    while any(worker.slots_free for worker in fleet.controller.workers()):
        names.append(f"many-{len(names)}")
        await fleet.controller.open(names[-1], 5)
        await eventually(lambda: {copy.session for w in fleet.controller.workers() for copy in w.copies} >= {*names})
    assert await why(fleet.controller.open("one-too-many", 5)) == "no_slot"
    owner = session(fleet, names[0]).owner
    await fleet.controller.close(names[0])
    assert await why(fleet.controller.move(names[0], "worker-2")) == "unknown_session"
    await eventually(lambda: any(w.slots_free for w in fleet.controller.workers() if w.name == owner))
    assert (await fleet.controller.open("again", 5)).owner == owner


def test_requests_of_every_kind_on_one_fleet(nursed: Nursed) -> None:
    async def run() -> None:
        async with fleet_of_two(nursery=nursed.nursery) as fleet:
            for trial in (damaged, thrown_away, mistaken, too_late, cancelled, disowned, full):
                await trial(fleet)

    nursed.run(run())
