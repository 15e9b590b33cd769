"""Two spawned workers, real moves, no HTTP."""

import asyncio

from tests.fleet.fleet_of_two import fleet
from tests.fleet.playing import replayed
from worldmove.worker.engines import build_engine


def frames_shown(play):
    return [digests for _, _, digests, _, _ in play.shown]


def test_a_session_plays_in_a_spawned_worker_as_it_would_here():
    async def play():
        async with fleet() as (controller, gateway):
            view = await controller.open("s-1", 7)
            await gateway.play("s-1", 12)
            return view, gateway.plays["s-1"]

    view, played = asyncio.run(play())
    assert view.num_bytes > 0
    assert [block for block, *_ in played.shown] == list(range(12))
    assert frames_shown(played) == replayed(build_engine("reference:tiny", 1), 7, played.lists)
