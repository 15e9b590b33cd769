"""What an offer has told of a state ahead: at its boundary only what differs from it is told, and read."""

from dataclasses import dataclass

from worldmove.errors import ManifestError
from worldmove.state.difference import Difference, difference, is_difference
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement


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
