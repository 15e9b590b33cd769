"""A state in an arena into which its bytes have landed, or are still landing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from worldmove.errors import ManifestError
from worldmove.state.arena import AnyArena
from worldmove.state.array import Memory
from worldmove.state.capture import Capture, HostStorage, Storage, storage_at
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import build
from worldmove.state.placement import Placement, check_placement
from worldmove.state.tree import NO_TYPES
from worldmove.units import ALIGNMENT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What lies in an arena, or will: a state's storages, and what of them is staged there for host memory."""

    capture: Capture
    staged: tuple[tuple[int, Extent, Memory], ...]
    """Where in the arena some bytes land, where in their storage they belong, and that storage's memory."""
    arena: AnyArena

    def settle(self) -> None:
        """Copy to host memory what was staged. Once, when every byte has landed."""
        if not isinstance(self.arena, DeviceArena) or not self.staged:
            return
        parts = [self.arena.part(place + extent.offset, extent.length) for place, extent, _ in self.staged]
        for (_, extent, memory), data in zip(self.staged, self.arena.kit.read_all(parts), strict=True):
            np.copyto(memory[extent.offset : extent.end], data)


def landing(manifest: Manifest, placement: Placement, arena: AnyArena) -> Landing:
    """Return a state's storages over an arena; its bytes may still be landing. Raises ManifestError."""
    check_placement(manifest, placement, arena.size)
    storages: list[Storage] = []
    staged: list[tuple[int, Extent, Memory]] = []
    for record, at in zip(manifest.storages, placement, strict=True):
        if not isinstance(arena, DeviceArena):
            if record.on_device:
                raise ManifestError("some of the state lies on a device, and this slot lies in host memory")
            storages.append(HostStorage(memory=arena.memory[at : at + record.num_bytes], used=record.used))
        elif record.on_device:
            storages.append(storage_at(arena.address + at, record.num_bytes, [arena.owner], record, arena.kit))
        else:
            memory = _aligned(record.num_bytes, at % ALIGNMENT_BYTES)
            storages.append(HostStorage(memory=memory, used=record.used))
            staged += ((at, extent, memory) for extent in record.used)
    kit = arena.kit if isinstance(arena, DeviceArena) else None
    capture = Capture(manifest=manifest, storages=tuple(storages), kit=kit)
    return Landing(capture=capture, staged=tuple(staged), arena=arena)


def landed(manifest: Manifest, placement: Placement, arena: AnyArena) -> Capture:
    """Return a capture of what lies in an arena, before any tree is made of it. Raises ManifestError."""
    state = landing(manifest, placement, arena)
    state.settle()
    return state.capture


def materialise(manifest: Manifest, placement: Placement, arena: AnyArena, types: Mapping[str, type] = NO_TYPES) -> Any:
    """Make the tree again, over the arena's memory. Raises ManifestError, or StateRefused for a type not known here."""
    return build(landed(manifest, placement, arena), types)


def _aligned(num_bytes: int, remainder: int) -> Memory:
    """Return new host memory at an address with a remainder modulo 256."""
    memory: Memory = np.zeros(num_bytes + 2 * ALIGNMENT_BYTES, dtype=np.uint8)
    begin = (remainder - int(memory.ctypes.data)) % ALIGNMENT_BYTES
    return memory[begin : begin + num_bytes]
