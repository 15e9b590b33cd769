"""What a source has said of its rows, read: nothing is taken for digests that cannot be those of the rows."""

from dataclasses import dataclass

import numpy as np

from worldmove.errors import ManifestError
from worldmove.move.messages import Boundary, Meet
from worldmove.state.row_digests import Digests
from worldmove.state.rows import Numbers, Rows

DIGEST_BYTES = 8
NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RestSaid:
    """All rows of a session that stood still before a block."""

    block: int
    rows: Rows
    digests: Digests


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundarySaid:
    """All rows of a frozen session."""

    digests: Digests
    changed: Numbers | None = None
    """Which of them are not as they were said to be at rest. None: that was not said."""


def said_at_rest(meet: Meet, rows: Rows) -> RestSaid | None:
    """Return what is said of the rows of the base; None where that is nothing, or of other rows."""
    if len(meet.rows) != DIGEST_BYTES * len(rows):
        return None
    return RestSaid(block=meet.block, rows=rows, digests=np.frombuffer(meet.rows, dtype="<u8"))


def unsaid(boundary: Boundary, rest: RestSaid | None) -> str:
    """Say why the digests of all rows cannot be known, where that is so."""
    is_known = boundary.changed is None or (rest is not None and rest.block == boundary.block)
    return "" if is_known else "what was said of its rows before has not come"


def said_at_boundary(boundary: Boundary, rest: RestSaid | None) -> BoundarySaid:
    """Return the digests of all rows. Raises ManifestError."""
    if len(boundary.rows) % DIGEST_BYTES:
        raise ManifestError(f"{len(boundary.rows)} bytes are no digests of rows")
    digests: Digests = np.frombuffer(boundary.rows, dtype="<u8")
    if boundary.changed is None or rest is None:
        return BoundarySaid(digests=digests)
    if len(boundary.changed) != NUMBER_BYTES * len(digests):
        raise ManifestError(f"{len(boundary.changed)} bytes are not the numbers of {len(digests)} rows")
    numbers = np.frombuffer(boundary.changed, dtype="<u4").astype(np.int64)
    if not len(numbers):
        return BoundarySaid(digests=rest.digests, changed=numbers)
    if numbers.max() >= len(rest.digests):
        raise ManifestError(f"there is no row {numbers.max()}")
    all_of_them = rest.digests.copy()
    all_of_them[numbers] = digests
    return BoundarySaid(digests=all_of_them, changed=numbers)
