"""Through pinned host memory between two processes on one GPU: exact, beside others' work, and whole after a kill."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.other_process import SIZE, WORDS
from tests.gpu.staged_path import SHAPE, path_at
from tests.gpu.test_device_moves import a_move
from tests.gpu.test_peer import words_of
from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.memory import Piece
from worldmove.transport.ring import OwnRing
from worldmove.transport.staged import Staged, StagedChannel
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan

ROOT = Path(__file__).parents[2]
WHOLE = [Extent(offset=0, length=SIZE)]


class Source:
    """The other process."""

    def __init__(self, socket: Path) -> None:
        paths = os.pathsep.join((f"{ROOT}/src", str(ROOT), os.environ.get("PYTHONPATH", "")))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.staged_source", str(socket)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.ticket = bytes.fromhex(self.process.stdout.readline())

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    other = Source(tmp_path / "there")
    yield other
    other.close()


def over(path: Staged, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await path.start()
        try:
            await story()
        finally:
            await path.close()

    asyncio.run(run())


async def pulled(channel: StagedChannel, extents: Sequence[Extent], arena: DeviceArena) -> None:
    window = arena.lend()
    await channel.pull_to_device(extents, window)
    window.close()


def test_whole_and_scattered_pulls_bring_exactly_what_lies_at_the_source(
    kit: Any, source: Source, tmp_path: Path
) -> None:
    path = path_at(tmp_path / "here", kit)
    arena = DeviceArena(SIZE, "destination", kit)
    expected = torch.arange(WORDS, device="cuda") * 3 + 1

    async def story() -> None:
        channel = await path.connect(source.ticket)
        arena.poison()
        await pulled(channel, WHOLE, arena)
        assert torch.equal(words_of(kit, arena), expected)
        arena.poison()
        wanted = words_of(kit, arena).clone()
        runs = [Extent(offset=at, length=4096 + 8 * (at % 7)) for at in range(0, SIZE - 16384, 64 << 10)]
        await pulled(channel, runs, arena)
        for run in runs:
            wanted[run.offset // 8 : run.end // 8] = expected[run.offset // 8 : run.end // 8]
        assert torch.equal(words_of(kit, arena), wanted)
        await channel.close()

    over(path, story)


def test_what_others_compute_meanwhile_is_right_and_so_is_what_was_pulled(
    kit: Any, source: Source, tmp_path: Path
) -> None:
    path = path_at(tmp_path / "here", kit)
    arena, stream = DeviceArena(SIZE, "destination", kit), torch.cuda.Stream()
    left = torch.randint(-8, 8, (2048, 2048), device="cuda").double()
    alone = left @ left

    async def story() -> None:
        channel = await path.connect(source.ticket)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            products = [left @ left for _ in range(40)]
        await pulled(channel, WHOLE, arena)
        stream.synchronize()
        assert all(torch.equal(product, alone) for product in products)
        assert torch.equal(words_of(kit, arena), torch.arange(WORDS, device="cuda") * 3 + 1)
        await channel.close()

    over(path, story)


def test_a_source_killed_in_the_middle_of_many_pulls_leaves_this_process_and_its_neighbours_whole(
    kit: Any, source: Source, tmp_path: Path
) -> None:
    path = path_at(tmp_path / "here", kit)
    arena, neighbour = DeviceArena(SIZE, "destination", kit), torch.arange(1 << 20, device="cuda")

    async def story() -> None:
        channel = await path.connect(source.ticket)
        window = arena.lend()
        pull = asyncio.create_task(channel.pull_to_device(WHOLE * 400, window))
        await asyncio.sleep(0.1)
        assert not pull.done()
        source.kill()
        with pytest.raises(TransportError):
            await pull
        window.close()  # which raises, where anything is still under way
        await channel.close()
        arena.poison()
        poisoned = words_of(kit, arena).clone()
        await asyncio.sleep(0.1)
        assert torch.equal(words_of(kit, arena), poisoned)
        assert torch.equal(neighbour, torch.arange(1 << 20, device="cuda"))

    over(path, story)


def test_a_session_moves_through_host_memory_and_plays_on(kit: Any, tmp_path: Path) -> None:
    path = path_at(tmp_path / "both", kit)
    ended, pair = a_move(path, inner=path)
    assert ended.outcome == "committed"
    assert len(pair.benches["b"].blocks()) == 2


@pytest.mark.parametrize("damage", list(Damage))
def test_damage_on_the_way_through_host_memory_moves_nothing(kit: Any, tmp_path: Path, damage: Damage) -> None:
    inner = path_at(tmp_path / "both", kit)
    ended, _ = a_move(Corrupting(inner, rng=random.Random(3), plan=DamagePlan(damage=damage)), inner=inner)
    assert ended.outcome == "aborted"
    assert ended.reason == ("transport" if damage is Damage.SHORT else "mismatch")


def test_shared_memory_is_pinned_and_unpinned_and_copies_both_ways_are_exact(kit: Any) -> None:
    ring = OwnRing(identity=bytes(16), shape=SHAPE, kit=kit)
    there, back = (DeviceArena(SHAPE.num_bytes, "slot", kit) for _ in range(2))
    there.poison()
    at, size = ring.at(0, 0), SHAPE.num_bytes
    kit.start_copy_out([Piece(there.address, at, size)]).wait()
    kit.start_copy_in([Piece(at, back.address, size)]).wait()
    assert bytes(kit.read(there.part(0, size))) == bytes(kit.read(back.part(0, size)))
    ring.release()
    ring.release()
    cuda_driver = pytest.importorskip("worldmove.state.cuda_driver", reason="no CUDA driver is here")
    with pytest.raises(cuda_driver.DriverError):  # so it was unpinned
        cuda_driver.unregister(kit.device.index or 0, at)
