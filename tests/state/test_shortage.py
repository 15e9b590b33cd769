"""Memory that cannot be had is one error of ours, in whichever words it is said, and nothing is kept of the attempt."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from worldmove.errors import NoMemory
from worldmove.state.arena import Arena, new_arena
from worldmove.state.kit_double import DoubleKit
from worldmove.state.shortage import shortage_told

BEYOND_ADDRESSES = 1 << 48


def raising(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    "work",
    [
        raising(MemoryError()),
        raising(OSError(errno.ENOMEM, "Cannot allocate memory")),
        raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")),
        raising(RuntimeError("CUDA error: out of memory")),
        lambda: torch.empty(BEYOND_ADDRESSES, dtype=torch.uint8),
        lambda: bytearray(BEYOND_ADDRESSES),
    ],
)
def test_whoever_finds_no_memory_hears_so_in_one_way(work: Callable[[], object]) -> None:
    with pytest.raises(NoMemory, match="there is no memory for it"), shortage_told():
        work()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("it is broken")])
def test_any_other_error_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error)), shortage_told():
        raise error


def open_files(name: str) -> list[str]:
    links = (path for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return [link for link in (os.readlink(path) for path in links if os.path.lexists(path)) if name in link]


@pytest.mark.parametrize("size", [BEYOND_ADDRESSES, 1 << 62, 1 << 70])
def test_an_arena_that_cannot_be_had_is_an_error_of_ours_and_keeps_no_descriptor(size: int) -> None:
    with pytest.raises(NoMemory, match="there is no memory for it"):
        Arena(size, "too-large")
    assert open_files("too-large") == []


def test_a_device_that_has_no_memory_keeps_none_of_it() -> None:
    kit, before = DoubleKit(capacity=1 << 60), len(open_files("worldmove-double"))
    with pytest.raises(NoMemory):
        new_arena(BEYOND_ADDRESSES, "too-large", kit)
    assert len(open_files("worldmove-double")) == before
    new_arena(1, "small", kit).close()
