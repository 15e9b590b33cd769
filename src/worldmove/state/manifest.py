"""What a state is, exactly: the boundary manifest.

A manifest names containers, leaves, shared memory, scalars and generator states, and no address: two equal
states have equal manifest bytes wherever they lie. Encoding: a frame (``frame``) around msgpack; whatever does
not encode to the very bytes it was read from is refused.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeVar

import msgspec

from worldmove.errors import ManifestError
from worldmove.state.by_id import ById
from worldmove.state.check import check_generators, check_value
from worldmove.state.frame import frame, peek, unframe
from worldmove.state.leaf import (
    DEVICE_KIND,
    ArrayLeaf,
    DeviceTensorLeaf,
    GeneratorLeaf,
    GeneratorRecord,
    Leaf,
    TensorLeaf,
)
from worldmove.state.leaf_record import LeafRecord, say
from worldmove.state.storage import StorageRecord, derive_storages
from worldmove.state.structure import Node, check_length, leaf_paths

MANIFEST_MAGIC = b"WMMF"
VERSION = 1
DEVICE_VERSION = 2
"""Of a state of which some lies on a device. Any other has the bytes that it always had."""
MAX_MANIFEST_BYTES = 1 << 24
MAX_GENERATORS_BYTES = 1 << 20
"""Of all generators of a state: each is made anew by the thread that steps everybody's blocks."""

T = TypeVar("T")


class _ManifestBody(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    structure: Node
    leaves: tuple[Leaf, ...]
    generators: tuple[GeneratorRecord, ...]


@dataclass(frozen=True, kw_only=True)  # no slots: what is worked out once is kept with it
class Manifest:
    """The exact account of a frozen state, but for the bytes of its storages. Equal if the bytes are equal."""

    structure: Node = field(compare=False, repr=False)
    leaves: tuple[LeafRecord, ...] = field(compare=False)
    storages: tuple[StorageRecord, ...] = field(compare=False)
    generators: tuple[GeneratorRecord, ...] = field(compare=False, repr=False)
    encoded: bytes = field(repr=False)

    @classmethod
    def of(
        cls, structure: Node, paths: Sequence[str], leaves: Sequence[Leaf], generators: Sequence[GeneratorRecord]
    ) -> "Manifest":
        """Make a manifest of parts that came from a live state; from anywhere else they go through from_bytes."""
        _check_size(generators)
        check_length(paths)
        body = _ManifestBody(structure, tuple(leaves), tuple(generators))
        encoded = frame(MANIFEST_MAGIC, version_of(leaves, generators), msgspec.msgpack.encode(body))
        if len(encoded) > MAX_MANIFEST_BYTES:
            raise ManifestError(f"the manifest has {len(encoded)} bytes, more than {MAX_MANIFEST_BYTES}")
        return cls(
            structure=structure,
            leaves=tuple(LeafRecord(path=p, content=leaf) for p, leaf in zip(paths, leaves, strict=True)),
            storages=derive_storages(paths, leaves),
            generators=tuple(generators),
            encoded=encoded,
        )

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return self.encoded

    @classmethod
    def from_bytes(cls, data: bytes, like: "Manifest | None" = None) -> "Manifest":
        """Return the manifest. Raises ManifestError for anything but the canonical bytes of one.

        ``like`` is one that it probably resembles: what is equal in both was checked there, and is not again.
        """
        version = DEVICE_VERSION if peek(data)[1] == DEVICE_VERSION else VERSION
        body = decoded(_ManifestBody, unframe(MANIFEST_MAGIC, version, data, MAX_MANIFEST_BYTES))
        if like is not None and body.structure == like.structure:
            similar = _similar(body, like, data)
            if similar is not None:
                return similar
        paths = leaf_paths(body.structure)
        if len(paths) != len(body.leaves):
            raise ManifestError(f"the containers have places for {len(paths)} leaves, and {len(body.leaves)} are there")
        for leaf in body.leaves:
            check_value(leaf)
        check_generators(body.leaves, len(body.generators))
        if version != version_of(body.leaves, body.generators):
            raise ManifestError(f"it is of version {version}, and what is in it is of the other")
        return cls.of(body.structure, paths, body.leaves, body.generators)

    @property
    def num_bytes(self) -> int:
        """The used bytes of all storages: what must travel beside the manifest."""
        return _num_used_bytes(ById(self.storages))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes."""
        return hashlib.sha256(self.encoded).digest()

    @cached_property
    def leaf_begins(self) -> tuple[int, ...]:
        """Where in the canonical bytes each leaf begins; last, where the generators do."""
        encode = msgspec.msgpack.Encoder().encode
        lengths = [len(encode(leaf.content)) for leaf in self.leaves]
        first = len(self.encoded) - len(encode(self.generators)) - sum(lengths)
        return tuple(accumulate(lengths, initial=first))

    def prepared(self) -> "Manifest":
        """Return this very one; what is asked of it in the pause of a move is worked out now."""
        for name in ("digest", "leaf_begins", "num_bytes"):
            getattr(self, name)
        return self

    @cached_property
    def on_device(self) -> bool:
        """Whether any byte of a storage is a device's."""
        return any(storage.on_device for storage in self.storages)

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all leaves, in order."""
        return tuple(leaf.path for leaf in self.leaves)

    def difference(self, other: "Manifest") -> tuple[str, ...]:
        """Return what differs, one sentence each; empty if, and only if, the manifests are equal."""
        if self == other:
            return ()
        here, there = ({leaf.path: leaf for leaf in m.leaves} for m in (self, other))
        texts = [f"{path} is here and not there" for path in here if path not in there]
        texts += [f"{path} is there and not here" for path in there if path not in here]
        for path in (path for path in here if path in there and here[path] != there[path]):
            texts.append(f"{path} is {say(here[path].content)} here and {say(there[path].content)} there")
        for path, leaf in here.items():
            if path in there and _generator(self, leaf) != _generator(other, there[path]):
                texts.append(f"{path} is a generator in another state")
        return tuple(texts) or ("the containers differ in type or in the order of their keys",)


def _similar(body: _ManifestBody, like: Manifest, data: bytes) -> Manifest | None:
    """Return the manifest if only scalars, enum members, generators' states differ; None if that is not all."""
    if len(body.leaves) != len(like.leaves) or len(body.generators) != len(like.generators):
        return None
    leaves = list(like.leaves)
    for i, leaf in enumerate(body.leaves):
        before = leaves[i].content
        if leaf == before:
            continue
        if isinstance(leaf, _WITH_PLACES) or isinstance(before, _WITH_PLACES):
            return None
        check_value(leaf)
        leaves[i] = LeafRecord(path=leaves[i].path, content=leaf)
    if peek(data)[1] != version_of(body.leaves, body.generators):
        return None
    _check_size(body.generators)
    return Manifest(
        structure=like.structure,
        leaves=tuple(leaves),
        storages=like.storages,
        generators=body.generators,
        encoded=data,
    )


def _check_size(generators: Sequence[GeneratorRecord]) -> None:
    size = sum(len(record.state) for record in generators)
    if size > MAX_GENERATORS_BYTES:
        raise ManifestError(f"its generators have {size:,} bytes together, more than {MAX_GENERATORS_BYTES:,}")


_WITH_PLACES = (TensorLeaf, ArrayLeaf, GeneratorLeaf)


def version_of(leaves: Sequence[Leaf], generators: Sequence[GeneratorRecord]) -> int:
    """Return the version that a manifest of these has."""
    of_device = any(isinstance(leaf, DeviceTensorLeaf) for leaf in leaves)
    return DEVICE_VERSION if of_device or any(record.kind == DEVICE_KIND for record in generators) else VERSION


def _generator(manifest: Manifest, leaf: LeafRecord) -> GeneratorRecord | None:
    index = getattr(leaf.content, "generator", None)
    return None if index is None else manifest.generators[index]


# Asked for by every pass of a move, and from one boundary to the next the storages are mostly the same object.
@lru_cache(maxsize=8)
def _num_used_bytes(storages: ById[tuple[StorageRecord, ...]]) -> int:
    return sum(storage.num_used_bytes for storage in storages.value)


def decoded(kind: type[T], body: bytes) -> T:
    """Return what msgpack says. Raises ManifestError for anything but its canonical bytes."""
    try:
        value = msgspec.msgpack.decode(body, type=kind)
        again = msgspec.msgpack.encode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ManifestError(f"it does not decode: {error}") from error
    if again != body:
        raise ManifestError("its bytes are not the canonical ones")
    return value
