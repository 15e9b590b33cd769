"""One slot's memory: what its descriptor allows, its pattern, and when it goes."""

import fcntl
import gc
import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from worldmove.state import (
    Arena,
    adopt,
    capture,
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
