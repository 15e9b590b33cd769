"""What a destination makes ready for a state that was offered and has not come: its tree over the slot, resolved.

At the boundary only what changed since the offer is made anew: scalars, members of enums, generators. A state whose
memory is laid out otherwise by then is built as if nothing had been rehearsed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from worldmove.state.arena import AnyArena, Landing, Placement, extents, landing
from worldmove.state.device_window import joined
from worldmove.state.difference import is_same
from worldmove.state.digest import prepare
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import make_changed, make_leaves
from worldmove.state.recapture import Known, remember
from worldmove.state.record import read_fields
from worldmove.state.tree import is_container, rebuild

Holder = tuple[Any, Any]
"""A dict or list of a tree, and the key of a leaf in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """One state as it was offered, in the place where it will land. Good for one tree."""

    manifest: Manifest
    placement: Placement
    landing: Landing
    leaves: list[Any]
    built: Any
    holders: tuple[Holder | None, ...]
    known: Known

    def tree(self, manifest: Manifest, placement: Placement, types: Mapping[str, type]) -> Any | None:
        """Return the tree of what comes, over the same memory; None if it is laid out otherwise."""
        mine = self.manifest
        is_like = is_same(manifest.structure, mine.structure) and is_same(manifest.storages, mine.storages)
        if not is_like or tuple(placement) != self.placement:
            return None
        pairs = enumerate(zip(manifest.leaves, self.manifest.leaves, strict=True))
        changed = [i for i, (a, b) in pairs if a is not b and a.content != b.content]
        values = make_changed(replace(self.landing.capture, manifest=manifest), types, changed)
        holders = [(self.holders[i], value) for i, value in values.items()]
        if all(holder is not None for holder, _ in holders):
            for holder, value in holders:
                if holder is not None:
                    holder[0][holder[1]] = value
            return self.built
        leaves = [values.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        return rebuild(manifest.structure, iter(leaves), types)


def rehearse(manifest: Manifest, placement: Placement, arena: AnyArena, types: Mapping[str, type]) -> Rehearsal:
    """Build a state over an arena in which its bytes are not yet. Raises ManifestError, StateRefused."""
    state = landing(manifest, placement, arena)
    leaves = make_leaves(state.capture, types)
    built = rebuild(manifest.structure, iter(leaves), types)
    known = remember(built, types, state.capture.kit)
    joined(extents(manifest, placement))  # kept for the pull
    prepare(known.capture)
    return Rehearsal(
        manifest=manifest,
        placement=tuple(placement),
        landing=state,
        leaves=leaves,
        built=built,
        holders=tuple(_holders(built, None)),
        known=known,
    )


def _holders(node: Any, holder: Holder | None) -> Iterator[Holder | None]:
    """Yield where each leaf can be exchanged, in the order of the walk; None where it cannot."""
    if type(node) is dict:
        for key, item in node.items():
            yield from _holders(item, (node, key))
    elif type(node) is list:
        for index, item in enumerate(node):
            yield from _holders(item, (node, index))
    elif is_container(type(node)):
        items = node if type(node) is tuple else (item for _, item in read_fields("", node))
        for item in items:
            yield from _holders(item, None)
    else:
        yield holder
