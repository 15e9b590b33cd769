"""One flat copy of as many bytes as a session has, where sessions lie: what a move's pause is held against."""

import time

import numpy as np
import torch

from worldmove.errors import MessageError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.memory import MemoryKit


def copy_ms(num_bytes: int, kit: MemoryKit | None = None) -> float:
    """Return how long one flat copy of so many bytes takes where sessions lie, pages there. It verifies nothing."""
    if num_bytes <= 0:
        raise MessageError("the session has no bytes to copy")
    if kit is not None:
        return _device_copy_ms(num_bytes, kit)
    source, copied = np.ones(num_bytes, dtype=np.uint8), np.zeros(num_bytes, dtype=np.uint8)
    begin = time.perf_counter()
    np.copyto(copied, source)
    return (time.perf_counter() - begin) * 1000


def _device_copy_ms(num_bytes: int, kit: MemoryKit) -> float:
    arenas = [DeviceArena(num_bytes, "worldmove-bench", kit) for _ in range(2)]
    try:
        took_ms = 0.0
        for _ in range(2):
            window, begin = arenas[1].lend(), time.perf_counter()
            window.start_copy(arenas[0].address, [Extent(offset=0, length=num_bytes)]).wait()
            took_ms = (time.perf_counter() - begin) * 1000
            window.close()
        return took_ms
    finally:
        for arena in arenas:
            arena.close()


def peer_copy_ms(num_bytes: int, source: str, target: str) -> float:
    """Return how long one flat copy takes from one GPU that this process sees to another, by torch."""
    held = torch.empty(num_bytes, dtype=torch.uint8, device=source).fill_(7)
    copied = torch.empty(num_bytes, dtype=torch.uint8, device=target)
    took_ms = 0.0
    for _ in range(2):
        _settle(source, target)
        begin = time.perf_counter()
        copied.copy_(held)
        _settle(source, target)
        took_ms = (time.perf_counter() - begin) * 1000
    return took_ms


def _settle(*devices: str) -> None:
    for device in devices:
        torch.cuda.synchronize(device)
