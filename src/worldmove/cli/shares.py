"""Things by their size: the largest first, each with its share of the whole."""

from collections.abc import Sequence

from worldmove.units import bytes_text

LEAF_HEADER = ("PATH", "KIND", "SHAPE", "SIZE", "BYTES", "SHARE")
BAR_CELLS = 10

LeafRow = tuple[str, str, Sequence[int], int]
"""Path, kind, shape, bytes."""


def leaf_rows(
    leaves: Sequence[LeafRow], *, total: int | None = None
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the header and the rows of a table of leaves. ``total``: bytes of all, where these are not all."""
    total = sum(num_bytes for *_, num_bytes in leaves) if total is None else total
    ordered = sorted(leaves, key=lambda leaf: -leaf[3])
    rows: list[tuple[object, ...]] = [
        (path, kind, "x".join(map(str, shape)) or "-", bytes_text(size), size, share(size, total))
        for path, kind, shape, size in ordered
    ]
    return LEAF_HEADER, rows


def share(part: int, total: int) -> str:
    """Return a share as a bar and a percentage."""
    ratio = part / total if total else 0.0
    return f"{'█' * round(BAR_CELLS * ratio):<{BAR_CELLS}} {100 * ratio:5.1f} %"
