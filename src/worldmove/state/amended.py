"""A manifest of which some values were read anew: scalars, members of enums, generators' states. Its containers and its
memory are as they were, so that neither is encoded, nor checked, again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from worldmove.state.frame import frame, peek
from worldmove.state.leaf import GeneratorRecord, Leaf
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A manifest, and its containers and each leaf of it, encoded."""

    manifest: Manifest
    structure: bytes
    leaves: tuple[bytes, ...]

    @classmethod
    def of(cls, manifest: Manifest) -> "Parts":
        """Take a manifest apart."""
        encode = msgspec.msgpack.Encoder().encode
        leaves = tuple([encode(leaf.content) for leaf in manifest.leaves])
        return cls(manifest=manifest, structure=encode(manifest.structure), leaves=leaves)

    def amended(self, changed: Mapping[int, Leaf], records: tuple[GeneratorRecord, ...]) -> "Parts | None":
        """Return the same with other values; None where that is too large for a manifest.

        The caller has checked them, that none has a place in memory, and that the generators' kinds are the same.
        """
        before = self.manifest
        if not changed and records == before.generators:
            return self
        leaves, encoded = list(before.leaves), list(self.leaves)
        encode = msgspec.msgpack.Encoder().encode
        for i, leaf in changed.items():
            leaves[i] = LeafRecord(path=leaves[i].path, content=leaf)
            encoded[i] = encode(leaf)
        body = b"".join((b"\x93", self.structure, _array_head(len(encoded)), *encoded, encode(records)))
        whole = frame(MANIFEST_MAGIC, peek(before.encoded)[1], body)
        if len(whole) > MAX_MANIFEST_BYTES:
            return None
        manifest = Manifest(
            structure=before.structure,
            leaves=tuple(leaves),
            storages=before.storages,
            generators=records,
            encoded=whole,
        )
        return Parts(manifest=manifest, structure=self.structure, leaves=tuple(encoded))


def _array_head(count: int) -> bytes:
    """Return what msgpack writes before an array's items."""
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
