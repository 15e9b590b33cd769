"""A part of a state that is held by itself: the same leaves, by the same paths, over other memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from worldmove.errors import StateRefused
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.gathering import begin_copy
from worldmove.state.leaf import ArrayLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement

Twins = tuple[tuple[int, int], ...]
"""A storage of a part, and the one of the whole that has the same leaves at the same offsets."""


def part_of(tree: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return what a state has under some keys. Raises StateRefused where it has none of them."""
    if not isinstance(tree, Mapping) or any(key not in tree for key in keys):
        raise StateRefused("", f"it is no dict that has {', '.join(keys)}")
    return {key: tree[key] for key in keys}


def twins(part: Manifest, whole: Manifest) -> Twins:
    """Return which storages of a part are which of the whole's. One that is not exactly alike is none of them."""
    contents = {leaf.path: leaf.content for leaf in whole.leaves}
    found: dict[int, int | None] = {}
    for leaf in part.leaves:
        own, other = leaf.content, contents.get(leaf.path)
        if not isinstance(own, TensorLeaf | ArrayLeaf) or own.storage is None:
            continue
        twin = other.storage if isinstance(other, TensorLeaf | ArrayLeaf) else None
        is_like = twin is not None and msgspec.structs.replace(own, storage=twin) == other
        found[own.storage] = twin if is_like and found.get(own.storage, twin) == twin else None
    pairs = ((own, twin) for own, twin in found.items() if twin is not None)
    return tuple((own, twin) for own, twin in pairs if part.storages[own] == whole.storages[twin])


def lay(part: Capture, pairs: Twins, placement: Placement, arena: AnyArena) -> None:
    """Copy storages of a part to where the whole has its own in an arena. Not for the event loop's thread."""
    places = [0] * len(part.storages)
    for own, twin in pairs:
        places[own] = placement[twin]
    for copy in begin_copy(part, tuple(places), [own for own, _ in pairs], arena):
        copy.wait()
