"""Two values that say what a state is. ``docs/state.md`` has both formulas in words.

The *state digest* has a fixed published seed: any two holders may compare it, at any time. The *move proof* has
the digest of every group of 1 MiB under the attempt's nonce: it shows that these bytes, of this attempt, landed.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import xxhash

from worldmove.state.capture import Capture
from worldmove.state.extent import Extent
from worldmove.state.geometry import overlap
from worldmove.state.leaf import ArrayLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.storage import leaf_runs

GROUP_BYTES = 1 << 20
DIGEST_BYTES = 16
STATE_SEED = 0x574F524C444D4F56
"""The published seed of every state digest: ``WORLDMOV``."""


class Digester(Protocol):
    """Something that turns bytes into 16 bytes."""

    @property
    def name(self) -> str:
        """What stands before the colon of a state digest."""
        ...

    def digest(self, data: memoryview | bytes, seed: int) -> bytes:
        """Return 16 bytes that depend on every byte, on their order and number, and on the seed (64 bits)."""
        ...


class Xxh3Digester:
    """xxh3_128, for host memory. Lets other threads run while it reads."""

    name = "xxh3-128"

    def digest(self, data: memoryview | bytes, seed: int) -> bytes:
        """Return the 16 bytes of xxh3_128, most significant first."""
        return xxhash.xxh3_128_digest(data, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDigest:
    """The digest of a whole state, comparable between any two holders of it."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Up to 1 MiB of a storage's used bytes, in extents of that storage. ``index`` counts over the whole state."""

    index: int
    storage: int
    extents: tuple[Extent, ...]

    @property
    def num_bytes(self) -> int:
        """Its bytes."""
        return sum(extent.length for extent in self.extents)


def groups(manifest: Manifest) -> tuple[Group, ...]:
    """Return the groups of a state, in order. Every storage begins a new one."""
    found: list[Group] = []
    for number, storage in enumerate(manifest.storages):
        for part in _parts(storage.used):
            found.append(Group(index=len(found), storage=number, extents=part))
    return tuple(found)


def group_paths(manifest: Manifest, group: Group) -> tuple[str, ...]:
    """Return the paths of the leaves that use a byte of the group."""
    views = ((leaf.path, leaf.content) for leaf in manifest.leaves)
    inside = ((p, v) for p, v in views if isinstance(v, TensorLeaf | ArrayLeaf) and v.storage == group.storage)
    return tuple(path for path, view in inside if overlap(leaf_runs(view), group.extents))


def group_digest(capture: Capture, group: Group, digester: Digester, nonce: bytes, layout_digest: bytes) -> bytes:
    """Return one group's digest under an attempt's nonce."""
    return digester.digest(_group_bytes(capture, group), _group_seed(group, nonce, layout_digest))


def group_digests(capture: Capture, digester: Digester, nonce: bytes, layout_digest: bytes) -> tuple[bytes, ...]:
    """Return the digest of every group, in order."""
    return tuple(group_digest(capture, g, digester, nonce, layout_digest) for g in groups(capture.manifest))


def state_digest(capture: Capture, digester: Digester) -> StateDigest:
    """Return the digest of manifest, lengths and every used byte, under the published seed."""
    return _of_groups(capture.manifest, lambda group: _group_bytes(capture, group), digester)


def state_digest_of_bytes(
    manifest: Manifest, read: Callable[[int], memoryview | bytes], digester: Digester
) -> StateDigest:
    """Return what ``state_digest`` does, from a state's used bytes alone. ``read``: returns the next so many."""
    return _of_groups(manifest, lambda group: read(group.num_bytes), digester)


def _group_seed(group: Group, nonce: bytes, layout_digest: bytes) -> int:
    text = struct.pack("<QQ", group.index, group.num_bytes)
    seed = hashlib.sha256(b"worldmove group 1\0" + _sized(nonce) + _sized(layout_digest) + text).digest()
    return int.from_bytes(seed[:8], "little")


def _of_groups(manifest: Manifest, bytes_of: Callable[[Group], memoryview | bytes], digester: Digester) -> StateDigest:
    text = manifest.to_bytes()
    parts = [b"worldmove state 1\0", struct.pack("<Q", len(text)), text]
    for group in groups(manifest):
        digest = digester.digest(bytes_of(group), STATE_SEED)
        parts += (struct.pack("<QQQ", group.index, group.storage, group.num_bytes), digest)
    return StateDigest(text=f"{digester.name}:{digester.digest(b''.join(parts), STATE_SEED).hex()}")


def _parts(used: tuple[Extent, ...]) -> Iterator[tuple[Extent, ...]]:
    """Cut extents into runs of GROUP_BYTES; the last is shorter."""
    part: list[Extent] = []
    room = GROUP_BYTES
    for extent in used:
        begin = extent.offset
        while begin < extent.end:
            length = min(room, extent.end - begin)
            part.append(Extent(offset=begin, length=length))
            begin, room = begin + length, room - length
            if not room:
                yield tuple(part)
                part, room = [], GROUP_BYTES
    if part:
        yield tuple(part)


def _group_bytes(capture: Capture, group: Group) -> memoryview | bytes:
    views = [capture.storages[group.storage].view(extent) for extent in group.extents]
    return views[0] if len(views) == 1 else b"".join(views)


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data
