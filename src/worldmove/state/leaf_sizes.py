"""What each leaf of a state is and how many bytes it has: for whoever wants to know where a state's size is."""

from collections.abc import Sequence

import msgspec

from worldmove.state.geometry import to_extents
from worldmove.state.leaf import ArrayLeaf, EnumLeaf, GeneratorLeaf, Leaf, NumpyScalarLeaf, ScalarLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.storage import leaf_runs


class LeafSize(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One leaf. ``num_bytes``: those that it uses; memory that two leaves share is counted at each."""

    path: str
    kind: str
    shape: tuple[int, ...]
    num_bytes: int


def largest(leaves: Sequence[LeafSize], num: int) -> tuple[LeafSize, ...]:
    """Return the ``num`` leaves that have most bytes, the earlier of equal ones, in the order of the state."""
    by_size = sorted(range(len(leaves)), key=lambda index: -leaves[index].num_bytes)
    return tuple(leaves[index] for index in sorted(by_size[:num]))


def leaf_sizes(manifest: Manifest) -> tuple[LeafSize, ...]:
    """Return every leaf of a state, in order."""
    return tuple(
        LeafSize(leaf.path, leaf.kind, leaf.shape, _num_bytes(manifest, leaf.content)) for leaf in manifest.leaves
    )


def _num_bytes(manifest: Manifest, leaf: Leaf) -> int:
    match leaf:
        case TensorLeaf() | ArrayLeaf():
            return sum(extent.length for extent in to_extents(leaf_runs(leaf)))
        case ScalarLeaf(value=value) | NumpyScalarLeaf(value=value):
            return len(value)
        case GeneratorLeaf(generator=index):
            return len(manifest.generators[index].state)
        case EnumLeaf(member=member):
            return len(member.encode())
