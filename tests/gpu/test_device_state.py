"""The state of a session on a GPU: captured, gathered, verified, made again, and refused where it was damaged."""

from typing import Any

import pytest
import torch

from tests.worker.device_engine import DeviceEngine
from worldmove.errors import ArenaFull, StateRefused
from worldmove.state import Xxh3Digester, capture, extents, gather, group_digests, materialise
from worldmove.state.capture import DeviceStorage
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import state_digest
from worldmove.state.dtypes import TORCH_ITEM_BYTES
from worldmove.state.groups import group_paths, groups
from worldmove.state.saved_state import copy_aside
from worldmove.worker.freezing import freeze_in
from worldmove.worker.installing import install_in, open_in
from worldmove.worker.states import captured_of

DIGESTER = Xxh3Digester()
SIZE = 128 << 20
DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)


def every_kind() -> dict[str, Any]:
    """Many dtypes, and every kind of stride and of leaf."""
    numbers = torch.Generator(device="cuda").manual_seed(5)
    raw = torch.randint(256, (9000,), dtype=torch.uint8, device="cuda", generator=numbers)
    leaves: dict[str, Any] = {}
    for name in DTYPES:
        leaves[f"of {name}"] = raw[:8000].clone()[: TORCH_ITEM_BYTES[name] * 500].view(getattr(torch, name))
    base = torch.randn(300, 700, device="cuda", generator=numbers)
    leaves |= {
        "base": base,
        "transposed": base.t(),
        "part": base[10:200:3, 5:600],
        "wide": base[0].expand(40, 700),
        "odd": raw[3:8190],
        "turned": torch.randn(50, dtype=torch.complex64, device="cuda", generator=numbers).conj(),
        "empty": torch.empty(0, 4, device="cuda"),
        "scalar": torch.tensor(3, device="cuda"),
        "host": torch.arange(70),
        "generator": numbers,
        "host generator": torch.Generator().manual_seed(1),
        "none": None,
        "count": 12,
    }
    return leaves


def test_every_kind_of_leaf_comes_out_of_a_slot_as_it_was(kit: Any) -> None:
    tree = every_kind()
    torch.cuda.synchronize()
    state = capture(tree, {}, kit)
    arena = DeviceArena(SIZE, "slot", kit)
    arena.poison()
    placement = gather(state, arena)
    again = materialise(state.manifest, placement, arena)
    there = capture(again, {}, kit)
    assert there.manifest == state.manifest
    assert group_digests(there, DIGESTER, b"n" * 32, b"l" * 32) == group_digests(state, DIGESTER, b"n" * 32, b"l" * 32)
    assert state_digest(there, DIGESTER) == state_digest(state, DIGESTER)
    assert [s.address % 256 for s in there.storages] == [s.address % 256 for s in state.storages]
    assert again["base"].is_cuda
    assert again["host"].is_cpu
    drawn = [torch.randn(1000, device="cuda", generator=g) for g in (tree["generator"], again["generator"])]
    assert torch.equal(*drawn)


def test_the_kernels_say_what_the_twin_says_of_the_same_state_in_host_memory(kit: Any) -> None:
    state = capture(every_kind(), {}, kit)
    assert state_digest(state, DIGESTER) == state_digest(copy_aside(state).capture, DIGESTER)


def test_one_flipped_bit_anywhere_changes_its_own_group_and_names_its_leaves(kit: Any) -> None:
    state = capture(every_kind(), {}, kit)
    before = group_digests(state, DIGESTER, b"n", b"l")
    for group in groups(state.manifest):
        storage = state.storages[group.storage]
        if not isinstance(storage, DeviceStorage):
            continue
        part = storage.part(group.extents[-1])
        last = kit.read(part)
        kit.write(part.address + part.length - 1, last[-1:] ^ 128)
        after = group_digests(state, DIGESTER, b"n", b"l")
        assert [i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [group.index]
        assert group_paths(state.manifest, group)
        kit.write(part.address, last)
    assert group_digests(state, DIGESTER, b"n", b"l") == before


def test_a_session_from_a_slot_plays_as_one_that_never_left_torchs_memory(engine: DeviceEngine) -> None:
    bare = engine.open(3)
    expected = [engine.step(bare, ()).frames.tobytes() for _ in range(9)]
    arenas = [DeviceArena(SIZE, "a", kit_of_engine(engine)), DeviceArena(SIZE, "b", kit_of_engine(engine))]
    session, _ = open_in(engine, engine.open(3), arenas[0])
    frames = []
    for block in range(9):
        if block % 2:
            still = freeze_in(engine, session, arenas[0])
            captured, placement = still.capture, still.placement
            arenas[1].poison()
            kit = kit_of_engine(engine)
            into = arenas[1].lend()
            into.start_copy(arenas[0].address, extents(captured.manifest, placement)).wait()
            into.close()
            session, there = install_in(engine, captured.manifest, placement, arenas[1])
            assert state_digest(there, DIGESTER) == state_digest(captured, DIGESTER)
            assert kit is there.kit
            arenas.reverse()
        frames.append(engine.step(session, ()).frames.tobytes())
    assert frames == expected


def kit_of_engine(engine: DeviceEngine) -> Any:
    from worldmove.state.kits import kit_of

    return kit_of(engine.spec.device)


def test_a_write_from_a_side_stream_after_the_boundary_makes_two_passes_differ(engine: DeviceEngine) -> None:
    session = engine.open(1)
    engine.step(session, ())
    engine.quiesce(session)
    state = captured_of(engine, session)
    first = group_digests(state, DIGESTER, b"n", b"l")
    with torch.cuda.stream(torch.cuda.Stream()):
        session.window[7, 7] += 1
    torch.cuda.synchronize()
    second = group_digests(state, DIGESTER, b"n", b"l")
    differing = [i for i, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]]
    assert [group_paths(state.manifest, groups(state.manifest)[i])[0] for i in differing] == ["window"]


def test_more_memory_than_the_device_has_is_declined_and_the_next_slot_is_made(kit: Any) -> None:
    with pytest.raises(ArenaFull):
        DeviceArena(1 << 45, "too large", kit)
    DeviceArena(1 << 20, "slot", kit).close()


def test_a_gpus_own_generator_is_refused(kit: Any) -> None:
    torch.cuda.init()
    with pytest.raises(StateRefused, match="process's own"):
        capture({"generator": torch.cuda.default_generators[0]}, {}, kit)


def test_poison_is_nowhere_zero(kit: Any) -> None:
    arena = DeviceArena(3 << 20, "slot", kit)
    arena.poison()
    assert arena.read(0, arena.size).all()
