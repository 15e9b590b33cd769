"""What an offer has told of a state ahead: at its boundary only what differs from it is told, and read."""

from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.errors import ManifestError
from worldmove.state.difference import Difference, difference, is_difference, is_same
from worldmove.state.extent import Extent
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, early_of, extents_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A state as it was offered, and where it would lie in its slot."""

    manifest: Manifest
    """For all who ask of one layout the same object."""
    places: Placement

    @classmethod
    def of(cls, layout: Layout) -> "Preview | None":
        """Return what a layout tells ahead; None where it tells nothing. Raises ManifestError."""
        return cls(manifest=layout.foretold.prepared(), places=layout.places) if layout.preview else None

    @property
    def early(self) -> tuple[int, ...]:
        """The storages that may be pulled before the boundary is told, where they lie in the slot by then."""
        return early_of(self.manifest, self.places)

    @property
    def early_extents(self) -> tuple[Extent, ...]:
        """Where those lie. Raises ManifestError."""
        return extents_of(self.manifest, self.places, self.early)

    def rest(self, manifest: Manifest, placement: Placement, moved: Sequence[int]) -> tuple[Extent, ...]:
        """Return what is to be pulled of a state after ``early`` was, if ``moved`` was brought into the slot since.

        Raises ManifestError.
        """
        late = {*range(len(placement))}.difference(self.kept(manifest, placement)).union(moved)
        return extents_of(manifest, placement, sorted(late))

    def keeps_early(self, manifest: Manifest, placement: Placement, moved: Sequence[int]) -> bool:
        """Say whether there is something early, and all of it lies as was foretold and was not brought there since."""
        return 0 < len(self.early) == len(self.kept(manifest, placement).difference(moved))

    def kept(self, manifest: Manifest, placement: Placement) -> frozenset[int]:
        """Return what of ``early`` lies as was foretold."""
        return frozenset(self.early).difference(self.displaced(manifest, placement))

    def displaced(self, manifest: Manifest, placement: Placement) -> Sequence[int]:
        """Return which storages lie otherwise than was foretold: all, where there are more of them, or fewer."""
        mine = self.manifest.storages
        if len(manifest.storages) != len(mine) or len(placement) != len(mine):
            return range(max(len(mine), len(placement)))
        if placement == self.places and is_same(manifest.storages, mine):
            return ()
        lies = zip(placement, self.places, manifest.storages, mine, strict=True)
        return [index for index, (at, place, now, then) in enumerate(lies) if at != place or now != then]

    def tell(self, manifest: Manifest, placement: Placement) -> tuple[bytes, Placement]:
        """Return what a boundary says of its state: what differs, and no placement where it is as was foreseen."""
        told = difference(self.manifest, manifest)
        if told is None:
            return manifest.to_bytes(), placement
        return told, () if placement == self.places else placement


def tell(preview: Preview | None, manifest: Manifest, placement: Placement) -> tuple[bytes, Placement]:
    """Return what a boundary says of its state to someone who has this preview."""
    return (manifest.to_bytes(), placement) if preview is None else preview.tell(manifest, placement)


def hear(preview: Preview | None, told: bytes, placement: Placement) -> tuple[Manifest, Placement]:
    """Return the state that a boundary speaks of, and where it lies. Raises ManifestError."""
    if not is_difference(told):
        return Manifest.from_bytes(told, None if preview is None else preview.manifest), placement
    if preview is None:
        raise ManifestError("it is told as a difference, and the offer has told nothing ahead")
    return Difference(told).amended(preview.manifest), placement or preview.places
