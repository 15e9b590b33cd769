"""How fast one GPU's link copies from and to pinned host memory: what the path through host memory is held against."""

import time
from collections.abc import Callable
from typing import Any

import torch

from worldmove.state.device_arena import DeviceArena
from worldmove.state.memory import MemoryKit, Part, PendingCopy, Piece
from worldmove.transport.ring import OwnRing, RingShape
from worldmove.units import MIB, PAGE_BYTES

CHUNK_BYTES = 128 * MIB
"""A ring's buffer for this: the largest that there may be."""

Series = dict[str, list[float]]


def pinned_rates(kit: MemoryKit, num_bytes: int, repeats: int) -> Series:
    """Return bytes per second of each way alone and of both at once, through memory that torch pinned.

    And the same through memory as a ring has it: shared, and registered with the driver.
    """
    arenas = [DeviceArena(num_bytes, "worldmove-bench", kit) for _ in range(2)]
    on_device = kit.name.startswith("cuda")
    pages = [torch.ones(num_bytes, dtype=torch.uint8, pin_memory=on_device) for _ in range(2)]
    num_buffers = max(-(-num_bytes // CHUNK_BYTES), 2)
    buffer_bytes = min(CHUNK_BYTES, -(-num_bytes // num_buffers // PAGE_BYTES) * PAGE_BYTES)
    ring = OwnRing(identity=bytes(16), shape=RingShape(buffer_bytes, num_buffers), kit=kit)
    ring_bytes = min(num_bytes, ring.shape.num_bytes)
    try:
        found = _rates(kit, arenas, (pages[0].data_ptr(), pages[1].data_ptr()), num_bytes, repeats)
        shared = _rates(kit, arenas, (ring.at(0, 0), ring.at(0, 0)), ring_bytes, repeats)
        return found | {f"ring {name}": values for name, values in shared.items() if name != "both"}
    finally:
        ring.release()
        for arena in arenas:
            arena.close()


def pinning_ms(kit: MemoryKit, shape: RingShape, repeats: int) -> dict[str, list[float]]:
    """Return how long a ring takes to be made and pinned, and to be given back."""
    made, released = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        ring = OwnRing(identity=bytes(16), shape=shape, kit=kit)
        made.append((time.perf_counter() - begin) * 1000)
        begin = time.perf_counter()
        ring.release()
        released.append((time.perf_counter() - begin) * 1000)
    return {"pinned": made, "released": released}


def _rates(kit: MemoryKit, arenas: list[DeviceArena], hosts: tuple[int, int], num_bytes: int, repeats: int) -> Series:
    def out() -> PendingCopy:
        return kit.start_copy_out([Piece(arenas[0].address, hosts[0], num_bytes)])

    def back() -> PendingCopy:
        return kit.start_copy_in([Piece(hosts[1], arenas[1].address, num_bytes)])

    ways: dict[str, tuple[Callable[[], PendingCopy], ...]] = {"out": (out,), "in": (back,), "both": (out, back)}
    return {name: [_rate(starts, num_bytes) for _ in range(repeats + 1)][1:] for name, starts in ways.items()}


def _rate(starts: tuple[Callable[[], PendingCopy], ...], num_bytes: int) -> float:
    begin = time.perf_counter()
    for copy in [start() for start in starts]:
        copy.wait()
    return num_bytes / (time.perf_counter() - begin)


def digest_of(arena: DeviceArena, num_bytes: int) -> tuple[bytes, ...]:
    """Return the fingerprints of a slot's first bytes, in groups of 1 MiB."""
    groups = [[Part(arena.address + at, min(MIB, num_bytes - at))] for at in range(0, num_bytes, MIB)]
    return arena.kit.fingerprints(arena.kit.plan(groups), bytes(range(32)))


def fill(arena: DeviceArena, seed: int) -> None:
    """Write random bytes all over a slot; return when they are there."""
    storage: Any = arena.kit.storage(arena.part(0, arena.size), arena.owner)
    on_device = arena.kit.name.startswith("cuda")
    device = arena.kit.name if on_device else "cpu"
    whole = torch.empty(0, dtype=torch.uint8, device=device).set_(storage, 0, (arena.size,), (1,))
    torch.randint(
        0, 256, (arena.size,), dtype=torch.uint8, out=whole, generator=torch.Generator(device).manual_seed(seed)
    )
    if on_device:
        torch.cuda.synchronize(device)
