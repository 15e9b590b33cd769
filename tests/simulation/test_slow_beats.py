"""Links on which every word is long on its way, as on a host that is busy all the time."""

import asyncio

import pytest

from tests.simulation import net
from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import ended, kept, protected, until
from worldmove.fleet.workers import NUM_WAYS
from worldmove.worker.messages import KEPT


@pytest.mark.parametrize("way_s", [0.01, 0.2, 0.27])
def test_an_older_snapshot_is_let_go_however_long_beats_take(monkeypatch: pytest.MonkeyPatch, way_s: float) -> None:
    """Its slot is another's to have, and its session's to move to."""
    monkeypatch.setattr(net, "LATENCY_S", (way_s, way_s))

    def keeping(stage: Stage) -> list[str]:
        assert stage.server.house is not None
        views = stage.server.house.controller.workers()
        return [view.name for view in views for copy in view.copies if copy.phase == KEPT]

    async def course(stage: Stage) -> None:
        tab = await protected(stage)
        await asyncio.sleep(0.5 * (NUM_WAYS + 2))
        earlier, _ = kept(stage) or ("", 0)
        stage.hosts.nodes[earlier].cut(15.0)
        await until(stage, lambda: len(set(keeping(stage))) == 2, "another keeps one too")
        await until(stage, lambda: len(keeping(stage)) == 1, "the older one is let go", within_s=30.0)
        assert keeping(stage) != [earlier]
        await ended(stage, tab)

    directed(course)
