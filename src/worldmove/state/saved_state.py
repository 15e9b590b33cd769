"""A state copied aside, written to a file, and read from one into an arena: every byte of it under one digest."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from worldmove.errors import ArenaFull, FileRefused
from worldmove.state.arena import AnyArena, Arena
from worldmove.state.capture import Capture, HostStorage, Storage
from worldmove.state.digest import Digester, state_digest, state_digest_of_bytes
from worldmove.state.extent import Extent
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.state.progress import GetsOn, unheard
from worldmove.state.saved import SavedHeader, read_header, read_manifest
from worldmove.units import ALIGNMENT_BYTES, round_up

PIECE_BYTES = 16 << 20
"""What is read or written at a time: so much of it is done in a second or two, however slow the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A state copied into memory of its own, so that its session may go on."""

    capture: Capture
    remainders: bytes
    """Where the live storages lay, modulo 256."""


def copy_aside(capture: Capture) -> Aside:
    """Copy a state."""
    copied = Capture(manifest=capture.manifest, storages=tuple(_copied(storage) for storage in capture.storages))
    return Aside(capture=copied, remainders=bytes(storage.address % ALIGNMENT_BYTES for storage in capture.storages))


def payload(aside: Aside) -> Iterator[bytes | memoryview]:
    """Yield what stands in a file behind the header: the manifest, and the used bytes in order, in pieces."""
    yield aside.capture.manifest.to_bytes()
    for storage in aside.capture.storages:
        yield from (storage.view(piece) for piece in _pieces(storage.used))


def require_intact(stream: BinaryIO, header: SavedHeader, digester: Digester) -> Manifest:
    """Read manifest and state, which come next, and return the manifest. Raises FileRefused unless both are whole."""
    manifest = read_manifest(stream, header)
    _require(state_digest_of_bytes(manifest, stream.read, digester).text, header)
    return manifest


def load(
    stream: BinaryIO, arena: AnyArena, digester: Digester, gets_on: GetsOn = unheard
) -> tuple[SavedHeader, Manifest, Placement]:
    """Read a saved world's state into an arena; ``gets_on`` hears of each piece that was read.

    Raises FileRefused unless it is whole, ArenaFull.
    """
    header = read_header(stream, os.fstat(stream.fileno()).st_size)
    manifest = read_manifest(stream, header)
    placement = laid_out(manifest, header.remainders, arena.size)
    for storage, place in zip(manifest.storages, placement, strict=True):
        for piece in _pieces(storage.used):
            _read_into(stream, arena, Extent(offset=place + piece.offset, length=piece.length))
            gets_on()
    _require(state_digest(landed(manifest, placement, arena), digester).text, header)
    return header, manifest, placement


def laid_out(manifest: Manifest, remainders: bytes, arena_bytes: int) -> Placement:
    """Return a place for every storage, with its old address modulo 256. Raises ArenaFull."""
    places, end = [], 0
    for storage, remainder in zip(manifest.storages, remainders, strict=True):
        places.append(round_up(max(end - remainder, 0), ALIGNMENT_BYTES) + remainder)
        end = places[-1] + storage.num_bytes
    if end > arena_bytes:
        raise ArenaFull(end, arena_bytes)
    return tuple(places)


def _pieces(used: Sequence[Extent]) -> Iterator[Extent]:
    """Cut extents where they are longer than a piece, and nowhere else."""
    for extent in used:
        for offset in range(extent.offset, extent.end, PIECE_BYTES):
            yield Extent(offset=offset, length=min(PIECE_BYTES, extent.end - offset))


def _read_into(stream: BinaryIO, arena: AnyArena, run: Extent) -> None:
    part = arena.memory[run.offset : run.end] if isinstance(arena, Arena) else np.empty(run.length, dtype=np.uint8)
    if stream.readinto(part.data) != run.length:  # type: ignore[attr-defined]
        raise FileRefused("This saved world became shorter while it was read.")
    if not isinstance(arena, Arena):
        arena.write(run.offset, part)


def _require(found: str, header: SavedHeader) -> None:
    if found != header.state_digest:
        raise FileRefused(f"This saved world is damaged: its state is {found}, not {header.state_digest}.")


def _copied(storage: Storage) -> HostStorage:
    copied = np.empty(storage.num_bytes, dtype=np.uint8)
    for extent in storage.used:
        np.copyto(copied[extent.offset : extent.end], np.frombuffer(storage.view(extent), dtype=np.uint8))
    return HostStorage(memory=copied, used=storage.used)
