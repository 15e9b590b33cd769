"""What is known of a state before it is frozen: what an offer says of it. Encoded as a manifest is (``manifest``)."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import msgspec

from worldmove.errors import ManifestError
from worldmove.state.frame import frame, unframe
from worldmove.state.manifest import Manifest, decoded
from worldmove.state.storage import MAX_STORAGE_BYTES
from worldmove.units import ALIGNMENT_BYTES, PAGE_BYTES, round_up

LAYOUT_MAGIC = b"WMLY"
LAYOUT_VERSION = 2
MAX_LAYOUT_BYTES = 1 << 24
MAX_PREVIEW_BYTES = 1 << 20


class LayoutLeaf(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is known of a leaf before the freeze. ``kind``: ``tensor bfloat16``, ``int``, ``generator``..."""

    path: str
    kind: str
    shape: tuple[int, ...]


class _LayoutBody(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    leaves: tuple[LayoutLeaf, ...]
    storages: tuple[int, ...]
    arena_bytes: int
    preview: bytes
    places: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)  # no slots: what is worked out once is kept as long as the offer
class Layout:
    """What an offer says of a state: paths, kinds and shapes, and the bytes that an arena must offer.

    Shapes may grow and leaves may appear until the freeze; ``arena_bytes`` is the bound that holds then too.
    """

    leaves: tuple[LayoutLeaf, ...]
    storages: tuple[int, ...]
    arena_bytes: int
    preview: bytes = b""
    """The manifest as it is now, so that the other end can make ready; empty where it is not told."""
    places: tuple[int, ...] = ()
    """Where in its slot each storage of the preview would lie."""

    @classmethod
    def of(
        cls, manifest: Manifest, *, arena_bytes: int | None = None, places: tuple[int, ...] | None = None
    ) -> "Layout":
        """Return the layout. ``arena_bytes`` is the slot's; without it, what this very state needs.

        With ``places`` the manifest goes along as a preview, unless it is too large for that.
        """
        leaves = tuple(LayoutLeaf(leaf.path, leaf.kind, leaf.shape) for leaf in manifest.leaves)
        storages = tuple(storage.num_bytes for storage in manifest.storages)
        needed = round_up(sum(round_up(size, ALIGNMENT_BYTES) + ALIGNMENT_BYTES for size in storages), PAGE_BYTES)
        told = places is not None and len(manifest.encoded) <= MAX_PREVIEW_BYTES
        layout = cls(
            leaves=leaves,
            storages=storages,
            arena_bytes=max(needed, PAGE_BYTES, arena_bytes or 0),
            preview=manifest.encoded if told else b"",
            places=places if told and places is not None else (),
        )
        if told:
            vars(layout)["foretold"] = manifest
        return layout

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        body = _LayoutBody(self.leaves, self.storages, self.arena_bytes, self.preview, self.places)
        return frame(LAYOUT_MAGIC, LAYOUT_VERSION, msgspec.msgpack.encode(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Layout":
        """Return the layout. Raises ManifestError for anything but the canonical bytes of one."""
        body = decoded(_LayoutBody, unframe(LAYOUT_MAGIC, LAYOUT_VERSION, data, MAX_LAYOUT_BYTES))
        sizes = [body.arena_bytes, *body.storages, *body.places, *(size for leaf in body.leaves for size in leaf.shape)]
        if not body.arena_bytes or any(not 0 <= size <= MAX_STORAGE_BYTES for size in sizes):
            raise ManifestError("a size in a layout is out of range")
        return cls(
            leaves=body.leaves,
            storages=body.storages,
            arena_bytes=body.arena_bytes,
            preview=body.preview,
            places=body.places,
        )

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes: what a nonce is bound to."""
        return hashlib.sha256(self.to_bytes()).digest()

    @cached_property
    def foretold(self) -> Manifest:
        """The manifest of the preview: one object for all who ask, whose leaves are compared by identity later.

        Raises ManifestError, also where nothing is told.
        """
        return Manifest.from_bytes(self.preview)
