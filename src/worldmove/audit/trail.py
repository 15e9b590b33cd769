"""What the blocks of one continuation left behind, as digests, and in what two of them differ first. Pure."""

from collections.abc import Sequence

import msgspec


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A boundary: the block that led to it (nothing of it at the first), and the state there."""

    frames: str
    notes: str
    state: str
    leaves: dict[str, str]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """In what two continuations differ first. ``block`` counts from the export; 0 is the restored state itself."""

    block: int
    leaf: str | None
    """The first leaf that differs, or None where only pictures or notes do."""
    frames: bool
    notes: bool

    def __str__(self) -> str:
        shown = [word for word, differs in (("frames", self.frames), ("notes", self.notes)) if differs]
        where = f"block {self.block}" if self.block else "at once"
        return f"{where}: {', '.join([*shown, *([self.leaf] if self.leaf is not None else [])])}"

    @property
    def seen(self) -> str:
        """Return what of it meets the eye first."""
        what = "frames" if self.frames else "notes" if self.notes else str(self.leaf)
        return f"block {self.block}: {what}"


SHARING = "the memory that leaves share"


def first_difference(expected: Sequence[Moment], found: Sequence[Moment]) -> Difference | None:
    """Compare two continuations moment by moment."""
    compared = (compare(one, other, block=i) for i, (one, other) in enumerate(zip(expected, found, strict=True)))
    return next((difference for difference in compared if difference is not None), None)


def compare(one: Moment, other: Moment, *, block: int, beside: str | None = None) -> Difference | None:
    """Compare two moments, but for the leaves at or below the path ``beside``."""
    paths = [path for path in {**one.leaves, **other.leaves} if beside is None or not within(path, beside)]
    leaf = next((path for path in paths if one.leaves.get(path) != other.leaves.get(path)), None)
    if leaf is None and beside is None and one.state != other.state:
        leaf = SHARING
    frames, notes = one.frames != other.frames, one.notes != other.notes
    if leaf is None and not frames and not notes:
        return None
    return Difference(block=block, leaf=leaf, frames=frames, notes=notes)


def within(path: str, other: str) -> bool:
    """Say whether a path is another one, or lies below it."""
    return path == other or not other or (path.startswith(other) and path[len(other)] in ".[:")


def part_of(moment: Moment, unit: str) -> dict[str, str]:
    """Return the leaves at or below a path, with their digests."""
    return {path: digest for path, digest in moment.leaves.items() if within(path, unit)}
