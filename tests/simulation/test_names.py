"""What a server names for a moment: the next one names nothing alike, for word of it may still be on its way."""

from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import SESSION, ended, goes_on, opened, shown, until
from worldmove.worker.messages import BlockDone


async def thrown_away(stage: Stage) -> str:
    return await stage.server.ask(lambda house: house.desk.recover(SESSION))


def copies(stage: Stage) -> list[str]:
    house = stage.server.house
    assert house is not None
    return [copy.session for view in house.controller.workers() for copy in view.copies if copy.phase == "throwaway"]


def test_a_throw_away_copy_of_the_next_server_has_another_name_and_an_earlier_ones_blocks_are_none_of_its() -> None:
    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await until(stage, lambda: shown(stage) > 4, "it is played")
        first = await thrown_away(stage)
        await until(stage, lambda: copies(stage) == [first], "it is there")
        stage.server.kill()
        await stage.server.start_again(0.1)
        await goes_on(stage)
        await until(stage, lambda: copies(stage) == [], "what the earlier server has thrown away is closed")
        second = await thrown_away(stage)
        assert second != first
        house = await stage.server.serving()
        late = BlockDone(
            session=first, epoch=0, block=0, frames=b"", frame_sha256=(), notes=(), compute_s=0.0, state_digest=""
        )
        house.gateway.take("worker-1", late)
        assert house.gateway.recoveries[SESSION].name == second
        await until(stage, lambda: SESSION not in house.gateway.recoveries, "it has ended")
        await ended(stage, tab)

    directed(course)
