"""A source that stands still before its freeze brings its state to where it is pulled from: its pause pulls nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.move import virtual
from tests.worker.bench_worker import bench
from tests.worker.device_engine import WIDTH, DeviceEngine, World
from tests.worker.test_device_move import ARENA_BYTES, peer
from tests.worker.test_move_between_workers import Pair
from worldmove.engine.base import Block, KeyChange
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Boundary, Ended, Meet, Ready
from worldmove.move.source_copy import Frozen, Resting
from worldmove.state.device_arena import DeviceArena
from worldmove.state.leaf import TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.worker.messages import Acknowledge, BlockDone, Open
from worldmove.worker.source_copy import SourceOfMove


class Rebinding(DeviceEngine):
    """Binds a tensor anew in each block, of the same size: it lies outside the slot until it is brought there."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        block = super().step(session, changes)
        session.rebound = session.rebound[:WIDTH].clone()
        return block


@pytest.mark.parametrize("strategy", ["pre-copy", "streaming"])
def test_nothing_is_pulled_in_the_pause_of_a_session_whose_rest_was_heard(strategy: str) -> None:
    said: list[Any] = []

    def noted(message: Any) -> bool:
        said.append(message)
        return False

    async def run() -> Ended:
        pair = Pair(engines=(Rebinding(), Rebinding()), transports={"path": peer()}, arena_bytes=ARENA_BYTES)
        pair.strategy = strategy
        pair.loses = noted
        try:
            await pair.open_on_a(3)
            pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
            await pair.open_attempt("path")
            pair.begin()
            await pair.hears(Ready)
            pair.start()
            await pair.hears(Ended)
            ended = [message for message in pair.heard if isinstance(message, Ended)]
            b = pair.benches["b"]
            b.inputs(3, 4)
            await b.rest()
            assert b.blocks() == [3, 4]
            return next(each for each in ended if each.side == "destination")
        finally:
            await pair.close()

    end = asyncio.run(run())
    assert (end.outcome, end.reason) == ("committed", "done")
    meets = [each for each in said if isinstance(each, Meet)]
    boundaries = [each for each in said if isinstance(each, Boundary)]
    assert len(meets[-1].rows) > 0
    assert (boundaries[0].rows, boundaries[0].changed) == (b"", b"")
    assert end.in_place_bytes == end.num_bytes > 4 * WIDTH
    assert end.moved_bytes == end.pulled_bytes == 0


def test_a_session_that_is_frozen_as_its_list_comes_is_brought_to_its_place_with_the_engine_in_hand() -> None:
    """At the last boundary that is tried, the other end is asked with the engine's turn taken."""

    async def run() -> tuple[Resting, Frozen]:
        trial = bench(Rebinding(), arena_bytes=ARENA_BYTES)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        trial.inputs(0, 1)
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        found: list[Resting] = []

        async def ready() -> None:
            found.append(await source.rest())

        copy.stop_before(copy.next_block)
        source._to_ask = ready
        frozen = await source.freeze()
        assert isinstance(copy.slot.arena, DeviceArena)
        at = frozen.placement[_of("rebound", frozen.capture.manifest)]
        lies = copy.slot.arena.read(at, 4 * WIDTH).view(np.float32)
        assert np.array_equal(lies, copy.engine_session.rebound.numpy())
        await trial.background.stop()
        return found[0], frozen

    rest, frozen = asyncio.run(run())
    assert (rest.block, rest.placement, rest.manifest) == (frozen.block, frozen.placement, frozen.capture.manifest)


def _of(path: str, manifest: Manifest) -> int:
    """The storage that a leaf lies in."""
    leaf = next(leaf.content for leaf in manifest.leaves if path in leaf.path)
    assert isinstance(leaf, TensorLeaf)
    assert leaf.storage is not None
    return leaf.storage


@pytest.mark.parametrize(("brings", "takes"), [(True, 0.8), (True, 5.0), (False, 5.0)])
def test_at_the_last_boundary_what_comes_over_is_waited_for_until_the_list_is_here(
    *, brings: bool, takes: float
) -> None:
    """At the others it would take until after the list. Where nothing comes over, the engine is taken at once."""

    async def run() -> tuple[list[int], bool, float]:
        def acknowledge(message: Any) -> None:
            if isinstance(message, BlockDone):
                done = Acknowledge(session="s-1", epoch=1, block=message.block, server_life=1)
                asyncio.get_running_loop().call_soon(trial.worker.take, done)

        trial = bench(DeviceEngine(), arena_bytes=ARENA_BYTES, send=acknowledge)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        period_s = trial.engine.spec.period_s
        source = SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot)
        asked: list[int] = []

        async def ready() -> None:
            asked.append(copy.next_block)
            await asyncio.sleep((takes if len(asked) == 2 else 5.0) * period_s)

        async def play() -> None:
            for block in range(8):
                lists.append(asyncio.get_running_loop().time())
                trial.inputs(block)
                await asyncio.sleep(period_s)

        lists: list[float] = []
        playing = asyncio.create_task(play())
        await asyncio.sleep(0.1 * period_s)
        await source.settle(ready, brings=brings)
        stood_s = asyncio.get_running_loop().time() - lists[-1]
        is_still_asked = source._to_ask is not None
        source._calm.end()
        playing.cancel()
        copy.play_on()
        await trial.background.stop()
        return asked, is_still_asked, stood_s / period_s

    asked, is_still_asked, stood = virtual.run(run())
    assert is_still_asked is not brings
    assert asked == ([2, 3] if brings else [2])
    assert stood == pytest.approx({0.8: 0.8, 5.0: 0.0 if brings else stood}[takes], abs=0.05)
