"""A simulated worker's link behaves as its edge in the product does: whatever cuts it, one follows another."""

import asyncio

import pytest

from tests.simulation.course import Stage
from tests.simulation.run import directed
from tests.simulation.test_protection import ended, goes_on, opened
from worldmove.worker.worker import Worker


def test_a_worker_that_was_cut_off_several_times_in_its_sleep_makes_one_link_when_it_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two, what it said over the first could come after what it had said since over the second."""
    links: list[Worker] = []
    joined = Worker.joined

    def counted(worker: Worker) -> None:
        links.append(worker)
        joined(worker)

    monkeypatch.setattr(Worker, "joined", counted)

    async def course(stage: Stage) -> None:
        tab = await opened(stage, every=0)
        await goes_on(stage)
        node = stage.hosts.nodes["worker-1"]
        links.clear()
        stage.loop.pause(node.node)
        for _ in range(5):
            node.cut(0.0)
            await asyncio.sleep(0.01)
        stage.loop.resume(node.node)
        await goes_on(stage)
        assert node.assembly is not None
        assert links == [node.assembly.worker]
        await ended(stage, tab)

    directed(course)
