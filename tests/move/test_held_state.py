"""What a destination brings over of leaves that are final, beside word of all of it at rest."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.move import virtual
from tests.move.test_streaming import HEAD
from worldmove.move import held_state
from worldmove.move.held_state import HeldState
from worldmove.move.messages import Meet
from worldmove.move.times import Times
from worldmove.state.arena import Arena
from worldmove.state.arena_rows import digests_in
from worldmove.state.capture import capture
from worldmove.state.rows import rows_of
from worldmove.state.runs import Runs


class Slot:
    """What a held state needs of its attempt and of its path; what is pulled is what the source has."""

    def __init__(self) -> None:
        tree = {"caches": [torch.zeros(4, 256) for _ in range(8)]}
        self.source = capture(tree, {})
        self.arena = Arena(1 << 16, "t")
        self.placement = tuple(index * 8192 for index in range(len(self.source.manifest.storages)))
        self.pulled: list[Runs] = []
        self.when_pulled: Callable[[], Any] = lambda: None
        self.times = Times(lambda: 0.0)
        self.host = self

    async def blocking(self, function: Callable[[], Any]) -> Any:
        return function()

    async def pull(self, wanted: Runs) -> None:
        self.pulled.append(wanted)
        self.when_pulled()
        await asyncio.sleep(0)

    def held(self) -> HeldState:
        made: Any = self
        manifest = self.source.manifest
        return HeldState(
            attempt=made, arena=self.arena, fetching=made, manifest=manifest, placement=self.placement, row_bytes=1024
        )

    def rest(self, block: int, **rolled: tuple[int, int, int]) -> Meet:
        rows = digests_in(self.arena, rows_of(self.source.manifest, self.placement, 1024)).tobytes()
        return Meet(**HEAD, block=block, rows=rows, rolled=rolled)


@pytest.mark.parametrize(("batch_bytes", "num_pulls"), [(1, 8), (8192, 4), (1 << 20, 1)])
def test_what_is_final_comes_over_some_leaves_at_a_time(
    monkeypatch: pytest.MonkeyPatch, batch_bytes: int, num_pulls: int
) -> None:
    monkeypatch.setattr(held_state, "BATCH_BYTES", batch_bytes)

    async def run(slot: Slot) -> None:
        held = slot.held()
        await held.look(held.base)
        await held.bring_final("caches", asyncio.Event())

    slot = Slot()
    virtual.run(run(slot))
    slot.arena.close()
    assert [each.num_bytes for each in slot.pulled] == [8 * 4096 // num_pulls] * num_pulls


def test_what_is_final_comes_over_no_more_once_all_of_it_has_come_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the pause would have to look for every row again."""
    monkeypatch.setattr(held_state, "BATCH_BYTES", 1)

    async def run(slot: Slot) -> int:
        held, rests = slot.held(), list[asyncio.Task[bool]]()
        await held.look(held.base)

        def rest_comes() -> None:
            if len(slot.pulled) == 2:
                rests.append(asyncio.create_task(held.take_rest(slot.rest(5))))

        slot.when_pulled = rest_comes
        await held.bring_final("caches", asyncio.Event())
        assert await rests[0]
        return len(held._lacking if held._lacking is not None else [0])

    slot = Slot()
    assert virtual.run(run(slot)) == 0
    slot.arena.close()
    assert len(slot.pulled) < 4


def test_of_a_leaf_that_is_rolled_as_before_its_rest_only_what_is_new_comes_over_and_once() -> None:
    """What is final twice of a block is moved once: the second time all of it comes."""

    async def run(slot: Slot) -> None:
        held, said = slot.held(), {f"caches[{number}]": (0, 1, 0) for number in range(7)}
        await held.look(held.base)
        assert await held.take_rest(slot.rest(5, **said))
        for _ in range(2):
            await held.bring_final("caches", asyncio.Event())
        assert await held.take_rest(slot.rest(6))
        await held.bring_final("caches", asyncio.Event())

    slot = Slot()
    virtual.run(run(slot))
    slot.arena.close()
    assert [each.num_bytes for each in slot.pulled] == [7 * 1024 + 4096, 8 * 4096, 8 * 4096]
