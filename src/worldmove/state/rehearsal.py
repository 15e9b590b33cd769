"""What a destination makes ready for a state that was offered and has not come: its tree over the slot, resolved.

At the boundary only what changed since the offer is made anew: scalars, members of enums, generators, and tuples and
records that hold one. A state whose memory is laid out otherwise by then is built as if nothing had been rehearsed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from worldmove.state.amended import changed_leaves
from worldmove.state.arena import AnyArena
from worldmove.state.device_digests import prepare
from worldmove.state.device_window import joined
from worldmove.state.difference import is_same
from worldmove.state.landing import Landing, landing
from worldmove.state.leaf import ArrayLeaf, TensorLeaf
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import make_leaves, make_some
from worldmove.state.placement import Placement, extents
from worldmove.state.recapture import Known, exchanged, remember
from worldmove.state.structure import DictNode, ListNode, Node, leaf_paths
from worldmove.state.tree import rebuild


class Place(NamedTuple):
    """Where a tree can be exchanged: an item of a dict or list, which is a leaf, or a tuple or record of leaves."""

    container: Any
    key: Any
    node: Node
    leaves: range


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """One state as it was offered, in the place where it will land. Good for one tree."""

    manifest: Manifest
    placement: Placement
    landing: Landing
    leaves: list[Any]
    root: list[Any]
    """The tree, alone in a list: it may be a tuple itself."""
    places: tuple[Place, ...]
    """Of each leaf."""
    known: Known
    """Of the tree as it is now."""
    session: Any = None
    """What an engine has made of the tree ahead, where it takes values later; none once a tensor was exchanged."""

    @property
    def built(self) -> Any:
        """The tree as it is now."""
        return self.root[0]

    def tree(self, manifest: Manifest, placement: Placement, types: Mapping[str, type]) -> Any | None:
        """Return the tree of what comes, over the same memory; None if it is laid out otherwise."""
        mine = self.manifest
        is_like = is_same(manifest.structure, mine.structure) and is_same(manifest.storages, mine.storages)
        if not is_like or tuple(placement) != self.placement:
            return None
        changed = changed_leaves(mine, manifest)
        if any(isinstance(leaf, TensorLeaf | ArrayLeaf) for leaf in changed.values()):
            self.session = None  # it has the one that was there, which is another view of the same memory
        which = sorted({*changed, *self.known.form.generators.places})
        values = make_some(replace(self.landing.capture, manifest=manifest), types, which)
        for i, value in values.items():
            self.leaves[i] = value
        for at in dict.fromkeys(self.places[i].leaves for i in which):
            place = self.places[at[0]]
            place.container[place.key] = rebuild(place.node, iter(self.leaves[at.start : at.stop]), types)
        if self.known.capture.manifest is mine:
            self.known = exchanged(self.known, manifest, values)
        return self.built


def rehearse(manifest: Manifest, placement: Placement, arena: AnyArena, types: Mapping[str, type]) -> Rehearsal:
    """Build a state over an arena in which its bytes are not yet. Raises ManifestError, StateRefused."""
    state = landing(manifest, placement, arena)
    leaves = make_leaves(state.capture, types)
    built = rebuild(manifest.structure, iter(leaves), types)
    known, root = remember(built, types, state.capture.kit), [built]
    if known.capture.manifest == manifest:  # one object: freeing the other takes long, in the pause
        known = replace(known, capture=known.capture.with_values(manifest))
    joined(extents(manifest, placement))  # kept for the pull
    prepare(known.capture)
    return Rehearsal(
        manifest=manifest,
        placement=tuple(placement),
        landing=state,
        leaves=leaves,
        root=root,
        places=tuple(_places(ListNode((manifest.structure,)), root, 0)),
        known=known,
    )


def _places(node: DictNode | ListNode, container: Any, first: int) -> Iterator[Place]:
    """Yield the place of each leaf in a dict or list, in the order of the walk; ``first`` is the first one's number."""
    keys = container if isinstance(node, DictNode) else range(len(container))
    children = [item[2] for item in node.items] if isinstance(node, DictNode) else node.items
    for key, child in zip(keys, children, strict=True):
        count = len(leaf_paths(child))
        if isinstance(child, DictNode | ListNode):
            yield from _places(child, container[key], first)
        else:
            yield from (Place(container, key, child, range(first, first + count)),) * count
        first += count
