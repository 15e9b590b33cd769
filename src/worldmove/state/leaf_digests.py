"""A short digest of each leaf, so that two states that differ can be told apart by path without their bytes.

A leaf's digest covers what the manifest says of it (but for where its storage lies) and the bytes that it uses. It
is short, because it only names what the state digest has found: 8 of the digester's 16 bytes.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from worldmove.state import wmf1
from worldmove.state.capture import Capture, DeviceStorage
from worldmove.state.digest import STATE_SEED, Digester
from worldmove.state.extent import Extent
from worldmove.state.geometry import to_extents
from worldmove.state.groups import GROUP_BYTES
from worldmove.state.leaf import LEAF_DIGEST_BYTES, ArrayLeaf, DeviceTensorLeaf, GeneratorLeaf, Leaf, TensorLeaf
from worldmove.state.memory import Part
from worldmove.state.storage import leaf_runs


def leaf_digests(capture: Capture, digester: Digester) -> bytes:
    """Return ``LEAF_DIGEST_BYTES`` for each leaf, in the manifest's order. A device's are read there, all at once."""
    leaves, on_device = capture.manifest.leaves, _on_device(capture)
    found = (_digest(capture, leaf.content, digester, on_device.get(i)) for i, leaf in enumerate(leaves))
    return b"".join(digest[:LEAF_DIGEST_BYTES] for digest in found)


def first_difference(paths: Sequence[str], digests: bytes, others: Sequence[str], their_digests: bytes) -> str | None:
    """Return the first path of ``paths`` that the others lack or say differently, then what only they have."""
    there = dict(zip(others, _each(their_digests), strict=True))
    for path, digest in zip(paths, _each(digests), strict=True):
        if there.pop(path, None) != digest:
            return path
    return next(iter(there), None)


def _each(digests: bytes) -> list[bytes]:
    return [digests[at : at + LEAF_DIGEST_BYTES] for at in range(0, len(digests), LEAF_DIGEST_BYTES)]


def _on_device(capture: Capture) -> dict[int, bytes]:
    """Return WMF1 of each leaf that lies on the capture's device, piece by piece: one launch for all of them."""
    kit = capture.kit
    if kit is None or not capture.manifest.on_device:
        return {}
    pieces: list[list[Part]] = []
    spans: dict[int, tuple[int, int]] = {}
    for i, leaf in enumerate(capture.manifest.leaves):
        view = leaf.content
        if not isinstance(view, DeviceTensorLeaf) or view.storage is None:
            continue
        storage, first = capture.storages[view.storage], len(pieces)
        if isinstance(storage, DeviceStorage):
            pieces += ([storage.part(piece)] for run in _extents(view) for piece in _cut(run))
            spans[i] = first, len(pieces)
    digests = kit.fingerprints(kit.plan(pieces), wmf1.STATE_KEY) if pieces else ()
    return {i: b"".join(digests[first:end]) for i, (first, end) in spans.items()}


def _cut(run: Extent) -> Iterator[Extent]:
    for offset in range(run.offset, run.end, GROUP_BYTES):
        yield Extent(offset=offset, length=min(GROUP_BYTES, run.end - offset))


def _digest(capture: Capture, leaf: Leaf, digester: Digester, on_device: bytes | None) -> bytes:
    parts = [msgspec.msgpack.encode(_placeless(leaf))]
    if on_device is not None:
        parts.append(on_device)
    elif isinstance(leaf, TensorLeaf | ArrayLeaf) and leaf.storage is not None:
        storage = capture.storages[leaf.storage]
        parts += (digester.digest(storage.view(extent), STATE_SEED) for extent in _extents(leaf))
    elif isinstance(leaf, GeneratorLeaf):
        record = capture.manifest.generators[leaf.generator]
        parts += (record.kind.encode(), digester.digest(record.state, STATE_SEED))
    return digester.digest(b"".join(parts), STATE_SEED)


def _placeless(leaf: Leaf) -> Leaf:
    """Return a leaf without the number of its storage or generator: a leaf before it may have gone."""
    match leaf:
        case TensorLeaf() | ArrayLeaf():
            return msgspec.structs.replace(leaf, storage=None if leaf.storage is None else 0)
        case GeneratorLeaf():
            return GeneratorLeaf(0)
    return leaf


# From one boundary to the next a session's views mostly stay.
@lru_cache(maxsize=4096)
def _extents(leaf: TensorLeaf | ArrayLeaf) -> tuple[Extent, ...]:
    return to_extents(leaf_runs(leaf))
