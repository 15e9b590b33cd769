"""What a destination makes ready for a state that was offered and has not come: its tree over the slot, resolved.

At the boundary only what changed since the offer is made anew: scalars, members of enums, generators. A state whose
memory is laid out otherwise by then is built as if nothing had been rehearsed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from worldmove.state.arena import AnyArena, Landing, Placement, extents, landing
from worldmove.state.digest import prepare
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import make_changed, make_leaves
from worldmove.state.recapture import Known, remember
from worldmove.state.tree import rebuild


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """One state as it was offered, in the place where it will land."""

    manifest: Manifest
    placement: Placement
    landing: Landing
    leaves: list[Any]
    known: Known

    def tree(self, manifest: Manifest, placement: Placement, types: Mapping[str, type]) -> Any | None:
        """Return the tree of what comes, over the same memory; None if it is laid out otherwise."""
        is_like = manifest.structure == self.manifest.structure and manifest.storages == self.manifest.storages
        if not is_like or tuple(placement) != self.placement:
            return None
        pairs = enumerate(zip(manifest.leaves, self.manifest.leaves, strict=True))
        changed = [i for i, (leaf, before) in pairs if leaf.content != before.content]
        state = replace(self.landing.capture, manifest=manifest)
        leaves = list(self.leaves)
        for i, value in make_changed(state, types, changed).items():
            leaves[i] = value
        return rebuild(manifest.structure, iter(leaves), types)


def rehearse(manifest: Manifest, placement: Placement, arena: AnyArena, types: Mapping[str, type]) -> Rehearsal:
    """Build a state over an arena in which its bytes are not yet. Raises ManifestError, StateRefused."""
    state = landing(manifest, placement, arena)
    leaves = make_leaves(state.capture, types)
    known = remember(rebuild(manifest.structure, iter(leaves), types), types, state.capture.kit)
    extents(manifest, placement)
    prepare(known.capture)
    return Rehearsal(manifest=manifest, placement=tuple(placement), landing=state, leaves=leaves, known=known)
