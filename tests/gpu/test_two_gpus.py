"""Two GPUs: each kit works on its own, whichever is the thread's; maps and moves between them, and a source's death."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.gpu.neighbours import beside
from tests.gpu.other_process import SIZE, WORDS
from tests.gpu.test_peer import Source, words_of
from tests.state.kernel_cases import TABLE, twin
from tests.worker.device_engine import DeviceEngine, build_cuda
from worldmove.fleet.gpus import seeing
from worldmove.fleet.reports import Outcome
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import state_digest
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.memory import Part, Piece
from worldmove.worker.freezing import freeze_in
from worldmove.worker.installing import install_in, open_in
from worldmove.worker.states import DIGESTER

ENGINE = "python:tests.worker.device_engine:build_cuda"
WAYS = [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")]

pytestmark = [pytest.mark.two_gpus, pytest.mark.timeout(240)]


@pytest.fixture(params=WAYS, ids=" to ".join)
def way(request: pytest.FixtureRequest) -> Iterator[tuple[Source, Any]]:
    """A source on one GPU, and the kit of the other."""
    source, destination = request.param
    other = Source(source)
    yield other, kit_of(destination)
    other.close()


def test_a_kit_digests_copies_and_poisons_on_its_own_gpu_whichever_is_the_threads() -> None:
    torch.cuda.set_device(0)
    kit: Any = kit_of("cuda:1")
    arena, copied = (DeviceArena(1 << 22, name, kit) for name in ("one", "other"))
    arena.poison()
    copied.poison()
    pieces = [Piece(arena.address + at, copied.address + at, 1024) for at in range(0, 1 << 22, 4096)]
    kit.start_copy(pieces).wait()
    held = torch.from_numpy(arena.read(0, arena.size).copy())
    groups = [[(begin, 1 << 20)] for begin in range(0, 1 << 22, 1 << 20)]
    plan = kit.plan([[Part(arena.address + at, length) for at, length in group] for group in groups])
    assert list(kit.fingerprints(plan, TABLE.key)) == list(twin(held, groups))
    assert torch.equal(torch.from_numpy(copied.read(0, 1024).copy()), held[:1024])
    assert torch.cuda.current_device() == 0
    first: Any = kit_of("cuda:0")
    assert kit.device_id != first.device_id


def test_a_state_is_worth_the_same_on_either_gpu_and_goes_on_alike() -> None:
    worth, pictures = [], []
    for device in ("cuda:0", "cuda:1"):
        engine = DeviceEngine(device=device, rows=4096)
        kit: Any = kit_of(device)
        arenas = [DeviceArena(64 << 20, name, kit) for name in "ab"]
        session, _ = open_in(engine, engine.open(7), arenas[0])
        engine.step(session, ())
        still = freeze_in(engine, session, arenas[0])
        window = arenas[1].lend()
        window.start_copy(arenas[0].address, [Extent(offset=0, length=arenas[0].size)]).wait()
        window.close()
        again, landed = install_in(engine, still.capture.manifest, still.placement, arenas[1])
        worth += [state_digest(still.capture, DIGESTER).text, state_digest(landed, DIGESTER).text]
        pictures.append(engine.step(again, ()).frames.tobytes())
    assert len(set(worth)) == 1
    assert len(set(pictures)) == 1


def test_a_flat_and_a_scattered_pull_bring_exactly_what_lies_on_the_other_gpu(way: tuple[Source, Any]) -> None:
    source, kit = way
    mapped = kit.open(source.handle, SIZE)
    arena = DeviceArena(SIZE, "destination", kit)
    expected = torch.arange(WORDS, device=kit.device) * 3 + 1
    runs = [Extent(offset=at, length=4096 + 8 * (at % 7)) for at in range(0, SIZE - 8192, 64 << 10)]
    for wanted in ([Extent(offset=0, length=SIZE)], runs):
        arena.poison()
        found = words_of(kit, arena)
        left = found.clone()
        window = arena.lend()
        window.start_copy(mapped.address, wanted).wait()
        window.close()
        for run in wanted:
            left[run.offset // 8 : run.end // 8] = expected[run.offset // 8 : run.end // 8]
        assert torch.equal(found, left)
    mapped.release()


def test_fingerprints_wait_for_pulls_into_what_they_read_and_for_no_others(way: tuple[Source, Any]) -> None:
    source, kit = way
    mapped = kit.open(source.handle, SIZE)
    arena, other = DeviceArena(SIZE, "destination", kit), DeviceArena(1 << 20, "other", kit)
    arena.poison()
    plans = [
        kit.plan([[Part(begin + at, 1 << 20)] for at in range(0, size, 1 << 20)])
        for begin, size in ((mapped.address, SIZE), (arena.address, SIZE), (other.address, 1 << 20))
    ]
    expected, _, mine = (kit.fingerprints(plan, TABLE.key) for plan in plans)
    window = arena.lend()
    started = [window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]) for _ in range(100)]
    assert kit.fingerprints(plans[2], TABLE.key) == mine
    assert not started[-1].is_done()
    assert kit.fingerprints(plans[1], TABLE.key) == expected
    assert started[-1].is_done()
    window.close()
    mapped.release()


def test_a_source_on_the_other_gpu_killed_in_the_middle_of_many_pulls_leaves_this_process_whole(
    way: tuple[Source, Any],
) -> None:
    source, kit = way
    mapped = kit.open(source.handle, SIZE)
    arena = DeviceArena(SIZE, "destination", kit)
    neighbour = torch.arange(1 << 20, device=kit.device)
    window = arena.lend()
    started = [window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]) for _ in range(200)]
    source.kill()
    for pending in started:
        pending.wait()
    window.close()
    assert torch.equal(neighbour, torch.arange(1 << 20, device=kit.device))
    assert torch.equal(words_of(kit, arena), torch.arange(WORDS, device=kit.device) * 3 + 1)
    mapped.release()


def test_a_process_that_sees_another_gpu_first_exports_what_lies_there() -> None:
    other = Source("cuda", **seeing("1", ("0", "1")))
    kit: Any = kit_of("cuda:0")
    try:
        mapped = kit.open(other.handle, SIZE)
        arena = DeviceArena(SIZE, "destination", kit)
        window = arena.lend()
        window.start_copy(mapped.address, [Extent(offset=0, length=SIZE)]).wait()
        window.close()
        assert torch.equal(words_of(kit, arena), torch.arange(WORDS, device=kit.device) * 3 + 1)
        mapped.release()
    finally:
        other.close()


def test_worlds_move_between_workers_on_two_gpus_and_a_source_killed_in_a_move_takes_nobody_along() -> None:
    ended = asyncio.run(beside(ENGINE, build_cuda(1), [None, None, 0.02, 0.1], gpus=("0", "1")))
    assert ended[:2] == [Outcome.COMMITTED] * 2
