"""Digesting one boundary: the block that led to it, and each leaf of the state there."""

import hashlib

import msgspec
import xxhash

from worldmove.audit.findings import LeafFact
from worldmove.audit.trail import Moment
from worldmove.engine.base import Block
from worldmove.state.capture import Capture
from worldmove.state.digest import Xxh3Digester, state_digest
from worldmove.state.geometry import to_extents
from worldmove.state.leaf import ArrayLeaf, EnumLeaf, GeneratorLeaf, Leaf, TensorLeaf
from worldmove.state.storage import leaf_runs


def moment_of(block: Block | None, state: Capture) -> Moment:
    """Digest a boundary; ``block`` is None where none was stepped yet."""
    return Moment(
        frames="" if block is None else _sha256(block.frames.tobytes() + str(block.frames.shape).encode()),
        notes="" if block is None else _sha256(repr((block.index, block.notes)).encode()),
        state=state_digest(state, Xxh3Digester()).text,
        leaves=leaf_digests(state),
    )


def leaf_digests(state: Capture) -> dict[str, str]:
    """Return a digest of each leaf's type, shape and content, wherever it lies in memory."""
    return {leaf.path: _leaf_digest(state, leaf.content) for leaf in state.manifest.leaves}


def leaf_facts(state: Capture) -> dict[str, LeafFact]:
    """Return what each leaf is, in words, and the bytes of its content."""
    return {
        leaf.path: LeafFact(kind=leaf.kind, num_bytes=sum(len(part) for part in _content(state, leaf.content)))
        for leaf in state.manifest.leaves
    }


def _leaf_digest(state: Capture, leaf: Leaf) -> str:
    digest = xxhash.xxh3_128(msgspec.msgpack.encode(_placeless(leaf)))
    for part in _content(state, leaf):
        digest.update(part)
    return digest.hexdigest()


def _placeless(leaf: Leaf) -> Leaf:
    """A leaf without what depends on the leaves before it."""
    match leaf:
        case TensorLeaf():
            return msgspec.structs.replace(leaf, storage=None, window_offset=0)
        case ArrayLeaf():
            return msgspec.structs.replace(leaf, storage=None, offset=0)
        case GeneratorLeaf():
            return msgspec.structs.replace(leaf, generator=0)
    return leaf


def _content(state: Capture, leaf: Leaf) -> list[memoryview | bytes]:
    match leaf:
        case TensorLeaf() | ArrayLeaf():
            if leaf.storage is None:
                return []
            storage = state.storages[leaf.storage]
            return [storage.view(extent) for extent in to_extents(leaf_runs(leaf))]
        case GeneratorLeaf():
            return [state.manifest.generators[leaf.generator].state]
        case EnumLeaf():
            return [leaf.member.encode()]
        case _:
            return [leaf.value]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
