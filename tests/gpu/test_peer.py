"""Two processes on one GPU: what is mapped is read exactly, and a source that is killed takes nobody along."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.children import environment
from tests.gpu.other_process import SIZE, WORDS
from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.memory import Part

ROOT = Path(__file__).parents[2]


class Source:
    """The other process, on a GPU of its own if it is told one."""

    def __init__(self, device: str = "cuda", **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.other_process", device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment() | variables,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.handle = bytes.fromhex(self.process.stdout.readline())

    def does(self, order: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

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
def source() -> Iterator[Source]:
    other = Source()
    yield other
    other.close()


def words_of(kit: Any, arena: DeviceArena) -> torch.Tensor:
    whole = torch.empty(0, dtype=torch.uint8, device=kit.device)
    return whole.set_(kit.storage(arena.part(0, SIZE), None), 0, (SIZE,), (1,)).view(torch.int64)


def test_a_flat_and_a_scattered_pull_bring_exactly_what_lies_at_the_source(kit: Any, source: Source) -> None:
    mapped = kit.open(source.handle, SIZE)
    arena = DeviceArena(SIZE, "destination", kit)
    expected = torch.arange(WORDS, device="cuda") * 3 + 1
    arena.poison()
    window = arena.lend()
    window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]).wait()
    window.close()
    assert torch.equal(words_of(kit, arena), expected)
    arena.poison()
    poisoned = words_of(kit, arena).clone()
    runs = [Extent(offset=at, length=4096 + 8 * (at % 7)) for at in range(0, SIZE - 8192, 64 << 10)]
    window = arena.lend()
    window.start_copy(mapped.address, runs).wait()
    window.close()
    found = words_of(kit, arena)
    for run in runs:
        poisoned[run.offset // 8 : run.end // 8] = expected[run.offset // 8 : run.end // 8]
    assert torch.equal(found, poisoned)
    with pytest.raises(TransportError):
        window.write(0, kit.read(arena.part(0, 8)))
    mapped.release()


def test_what_the_source_writes_later_is_seen_through_the_map_and_not_in_the_copy(kit: Any, source: Source) -> None:
    mapped = kit.open(source.handle, SIZE)
    arena = DeviceArena(SIZE, "destination", kit)
    window = arena.lend()
    window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]).wait()
    before = words_of(kit, arena).clone()
    source.does("write 4096 77")
    assert torch.equal(words_of(kit, arena), before)
    window.start_copy(mapped.address, [Extent(offset=4096, length=8)]).wait()
    assert arena.read(4096, 1)[0] == 77
    mapped.release()


def test_a_source_killed_in_the_middle_of_many_pulls_leaves_this_process_and_its_neighbours_whole(
    kit: Any, source: Source
) -> None:
    mapped = kit.open(source.handle, SIZE)
    arena = DeviceArena(SIZE, "destination", kit)
    neighbour = torch.arange(1 << 20, device="cuda")
    window = arena.lend()
    started = [window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]) for _ in range(200)]
    source.kill()
    for pending in started:
        pending.wait()
    window.close()
    assert torch.equal(neighbour, torch.arange(1 << 20, device="cuda"))
    assert torch.equal(words_of(kit, arena), torch.arange(WORDS, device="cuda") * 3 + 1)
    mapped.release()


@pytest.mark.parametrize("more", [4 << 20, 64 << 20, 1 << 40])
def test_a_handle_of_less_memory_than_is_said_is_refused_and_the_kit_works_on(
    kit: Any, source: Source, more: int
) -> None:
    with pytest.raises(TransportError, match="the source's memory has"):
        kit.open(source.handle, SIZE + more)
    own = kit.allocate(1 << 20)
    with pytest.raises(TransportError, match="the source's memory has"):
        kit.open(kit.export(own), (1 << 20) + more)
    own.release()
    mapped = kit.open(source.handle, SIZE)
    assert kit.read(Part(mapped.address, 8)).view("<i8")[0] == 1
    mapped.release()


def test_a_handle_that_names_nothing_is_refused_and_the_kit_works_on(kit: Any) -> None:
    with pytest.raises(TransportError):
        kit.open(bytes(64), SIZE)
    assert kit.read(DeviceArena(4096, "slot", kit).part(0, 16)).size == 16
