"""A manifest told as what differs from one that the other end has: values alone, never a place in memory.

From an offer to its boundary cursors move and generators are drawn from; the rest is as it was told. So a boundary may
say these values, and the SHA-256 of both manifests for certainty. Whoever reads it puts the whole together again.
"""

from typing import Annotated

import msgspec

from worldmove.errors import ManifestError
from worldmove.state.amended import amended, changed_leaves
from worldmove.state.check import check_value
from worldmove.state.frame import frame, peek, unframe
from worldmove.state.leaf import ArrayLeaf, GeneratorLeaf, GeneratorRecord, Leaf, TensorLeaf
from worldmove.state.manifest import MAX_MANIFEST_BYTES, Manifest, decoded

DIFFERENCE_MAGIC = b"WMDF"
VERSION = 1

_PLACED = (TensorLeaf, ArrayLeaf, GeneratorLeaf)
_Sha256 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class _Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    base: _Sha256
    whole: _Sha256
    leaves: tuple[tuple[int, Leaf], ...]
    generators: tuple[GeneratorRecord, ...] | None
    """None where they are as they were."""


def difference(base: Manifest, now: Manifest) -> bytes | None:
    """Return what ``amended`` makes ``now`` of; None where more differs than values."""
    if not (is_same(now.storages, base.storages) and is_same(now.structure, base.structure)):
        return None
    changed = tuple(changed_leaves(base, now).items())
    if any(isinstance(leaf, _PLACED) or isinstance(base.leaves[i].content, _PLACED) for i, leaf in changed):
        return None
    records = None if now.generators == base.generators else now.generators
    body = _Body(base.digest, now.digest, changed, records)
    return frame(DIFFERENCE_MAGIC, VERSION, msgspec.msgpack.encode(body))


def is_same(here: object, there: object) -> bool:
    """Compare two parts of manifests, which mostly are one object."""
    return here is there or here == there


def is_difference(data: bytes) -> bool:
    """Say whether bytes are no whole manifest."""
    return peek(data)[0] == DIFFERENCE_MAGIC


class Difference:
    """One that was read; nothing of it is checked against a manifest yet."""

    def __init__(self, data: bytes) -> None:
        """Raises ManifestError for anything but the canonical bytes of a difference."""
        self._body = decoded(_Body, unframe(DIFFERENCE_MAGIC, VERSION, data, MAX_MANIFEST_BYTES))

    def amended(self, manifest: Manifest) -> Manifest:
        """Return the whole one. Raises ManifestError where this is none of ``manifest``, or not what it says."""
        body = self._body
        if body.base != manifest.digest:
            raise ManifestError("it is told as the difference from another manifest")
        records = manifest.generators if body.generators is None else body.generators
        if [record.kind for record in records] != [record.kind for record in manifest.generators]:
            raise ManifestError("a difference exchanges a generator for one of another kind")
        last = -1
        for index, leaf in body.leaves:
            if not last < index < len(manifest.leaves):
                raise ManifestError(f"leaf {index} of a difference is out of its order, or of no leaf")
            if isinstance(leaf, _PLACED) or isinstance(manifest.leaves[index].content, _PLACED):
                raise ManifestError(f"{manifest.leaves[index].path} lies in memory, and is told as a value")
            check_value(leaf)
            last = index
        found = amended(manifest, dict(body.leaves), records)
        if found is None or found.digest != body.whole:
            raise ManifestError("what a difference makes of a manifest is not what it says")
        return found
