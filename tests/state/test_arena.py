import fcntl
import gc
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from worldmove.errors import ArenaFull, ManifestError
from worldmove.state import (
    Arena,
    Extent,
    Layout,
    adopt,
    capture,
    check_placement,
    extents,
    gather,
    landed,
    materialise,
)


def test_whoever_gets_the_descriptor_can_map_it_for_reading_only() -> None:
    arena = Arena(8192, "sealed")
    with mmap.mmap(arena.fd, arena.size, prot=mmap.PROT_READ) as readable:
        arena.buffer[5000] = 77
        assert readable[5000] == 77
        with pytest.raises(TypeError):
            readable[0] = 1
    with pytest.raises(PermissionError):
        mmap.mmap(arena.fd, arena.size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    again = os.open(f"/proc/self/fd/{arena.fd}", os.O_RDWR)
    with pytest.raises(PermissionError):
        mmap.mmap(again, arena.size)
    os.close(again)


def test_the_descriptor_cannot_be_written_shrunk_or_grown() -> None:
    arena = Arena(8192, "sealed")
    for change in (
        lambda: os.pwrite(arena.fd, b"x", 0),
        lambda: os.ftruncate(arena.fd, 4096),
        lambda: os.ftruncate(arena.fd, 16384),
    ):
        with pytest.raises(PermissionError):
            change()
    assert os.fstat(arena.fd).st_size == 8192


def test_no_further_seal_can_be_added() -> None:
    with pytest.raises(PermissionError):
        fcntl.fcntl(Arena(4096, "sealed").fd, 1033, 0x08)


def test_a_forked_child_has_no_writable_mapping() -> None:
    arena = Arena(4096, "forked")
    maps = Path("/proc/self/smaps").read_text(encoding="utf-8").split("memfd:forked")[1]
    flags = next(line for line in maps.splitlines() if line.startswith("VmFlags:")).split()
    assert arena.size == 4096
    assert "dc" in flags


def test_an_arena_is_whole_pages_at_a_page() -> None:
    arena = Arena(5000, "pages")
    assert (arena.size, len(arena.buffer), arena.address % 4096) == (8192, 8192, 0)
    assert not arena.buffer.readonly


def test_poison_is_nowhere_zero_and_differs_from_place_to_place() -> None:
    arena = Arena(3 << 20, "poison")
    arena.poison()
    words = np.frombuffer(arena.buffer, dtype=np.uint64)
    assert np.count_nonzero(np.frombuffer(arena.buffer, dtype=np.uint8)) == arena.size
    assert len(np.unique(words)) > 0.999 * len(words)
    pages = {bytes(arena.buffer[i : i + 4096]) for i in range(0, arena.size, 4096)}
    assert len(pages) == arena.size // 4096


def test_poison_is_the_same_every_time_and_leaves_nothing() -> None:
    one, other = Arena(1 << 21, "one"), Arena(1 << 21, "other")
    other.buffer[:] = b"\0" * other.size
    one.poison()
    other.poison()
    assert one.buffer == other.buffer


def test_closing_never_takes_memory_from_a_live_tensor() -> None:
    arena = Arena(4096, "closed while used")
    state = capture({"x": torch.arange(8)})
    tree = materialise(state.manifest, adopt(state, arena), arena)
    descriptor = arena.fd
    arena.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    gc.collect()
    assert tree["x"].tolist() == list(range(8))
    tree["x"].add_(1)
    assert _num_mappings("closed while used") == 1
    del tree
    gc.collect()
    assert _num_mappings("closed while used") == 0
    arena.close()


def _num_mappings(name: str) -> int:
    return Path("/proc/self/maps").read_text(encoding="utf-8").count(f"memfd:{name}")


def _views() -> dict[str, Any]:
    base = torch.arange(1000, dtype=torch.float32)
    return {"a": base[100:200], "b": base[150:300], "c": torch.ones(3), "d": base[900:]}


def test_what_travels_is_every_used_byte_once_and_no_other() -> None:
    state = capture(_views())
    arena = Arena(16384, "extents")
    at, other = adopt(state, arena)
    assert extents(state.manifest, (at, other)) == tuple(
        sorted(
            [
                Extent(offset=at + 400, length=800),
                Extent(offset=at + 3600, length=400),
                Extent(offset=other, length=12),
            ],
            key=lambda extent: extent.offset,
        )
    )


def test_extents_that_touch_in_the_arena_are_one() -> None:
    state = capture([torch.zeros(64, dtype=torch.uint8), torch.zeros(64, dtype=torch.uint8)])
    assert extents(state.manifest, (256, 320)) == (Extent(offset=256, length=128),)
    assert extents(state.manifest, (256, 321)) == (Extent(offset=256, length=64), Extent(offset=321, length=64))
    assert extents(capture({"n": 1}).manifest, ()) == ()


def test_bytes_between_the_used_ones_are_not_copied() -> None:
    state = capture(_views())
    arena = Arena(16384, "between")
    arena.poison()
    before = bytes(arena.buffer)
    at = adopt(state, arena)[0]
    assert arena.buffer[at : at + 400] == before[at : at + 400]
    assert arena.buffer[at + 1200 : at + 3600] == before[at + 1200 : at + 3600]


@pytest.mark.parametrize("shift", [0, 1, 64, 100, 255])
def test_every_storages_address_modulo_256_is_kept(shift: int) -> None:
    memory = np.zeros(5000, dtype=np.uint8)
    skip = (shift - memory.ctypes.data) % 256
    state = capture([torch.from_numpy(memory[skip : skip + 1000]), torch.ones(5)])
    arena = Arena(16384, "alignment")
    placement = adopt(state, arena)
    assert placement[0] % 256 == shift
    copy = capture(materialise(state.manifest, placement, arena))
    assert [s.address % 256 for s in copy.storages] == [s.address % 256 for s in state.storages]


def test_a_state_that_does_not_fit_is_refused_with_its_numbers() -> None:
    state = capture([torch.zeros(3000, dtype=torch.uint8), torch.zeros(3000, dtype=torch.uint8)])
    with pytest.raises(ArenaFull) as full:
        adopt(state, Arena(4096, "small"))
    assert full.value.needed == 3000
    assert full.value.available < 3000


@pytest.mark.parametrize(
    ("placement", "why"),
    [
        ((0,), "1 places for 2"),
        ((0, 4000, 8000), "3 places for 2"),
        ((0, 3999), "overlaps"),
        ((11, 0), "overlaps"),
        ((5, 5), "overlaps"),
        ((-1, 5000), "overlaps"),
        ((0, 16384 - 11), "ends at 16385"),
        ((1 << 80, 0), "ends at"),
    ],
)
def test_a_hostile_placement_is_refused(placement: tuple[int, ...], why: str) -> None:
    manifest = capture(_views()).manifest
    with pytest.raises(ManifestError, match=why):
        check_placement(manifest, placement, 16384)
    with pytest.raises(ManifestError, match=why):
        materialise(manifest, placement, Arena(16384, "hostile"))


def test_what_landed_can_be_read_before_a_tree_is_made() -> None:
    state = capture(_views())
    arena = Arena(Layout.of(state.manifest).arena_bytes, "landed")
    placement = adopt(state, arena)
    inside = landed(state.manifest, placement, arena)
    for here, there in zip(state.storages, inside.storages, strict=True):
        assert [bytes(here.view(extent)) for extent in here.used] == [
            bytes(there.view(extent)) for extent in there.used
        ]
    assert gather(inside, arena) == placement
