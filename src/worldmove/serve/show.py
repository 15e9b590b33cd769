"""Which block may be shown: the gateway's rule, pure.

A block is shown only if the ledger's row names its sender as the owner, in the block's epoch; that epoch was
not closed here; ``shown`` is recorded for it; and it is the next block. The row decides, never the memory of
it: a frame in flight while the owner changes would otherwise be shown from two ends.
"""

from dataclasses import dataclass
from enum import Enum

from worldmove.fleet.ports import Owner


class Verdict(Enum):
    """What to do with a block that came."""

    SHOW = "show"
    RECORD_FIRST = "record_first"
    """It may be shown once the row says that its epoch was."""
    REPEATED = "repeated"
    """The owner sends again what was shown: acknowledge it again."""
    NO_OWNER = "no_owner"
    NOT_THE_OWNER = "not_the_owner"
    OTHER_EPOCH = "other_epoch"
    CLOSED_EPOCH = "closed_epoch"
    AHEAD = "ahead"
    MALFORMED = "malformed"
    """Of its owner, and its frames are not of the engine's shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What the gateway knows of a session: next block, newest epoch closed here, epoch recorded as shown."""

    next_block: int
    closed_epoch: int | None = None
    shown_epoch: int | None = None


def judge(fence: Fence, row: Owner | None, *, worker: str, epoch: int, block: int) -> Verdict:
    """Decide about one block of ``worker``'s, by the row as it is now."""
    if row is None:
        return Verdict.NO_OWNER
    if row.worker != worker:
        return Verdict.NOT_THE_OWNER
    if row.epoch != epoch:
        return Verdict.OTHER_EPOCH
    if fence.closed_epoch is not None and epoch <= fence.closed_epoch:
        return Verdict.CLOSED_EPOCH
    return _place(fence, epoch, block)


def _place(fence: Fence, epoch: int, block: int) -> Verdict:
    """Judge a block that is its owner's by where it stands."""
    if block != fence.next_block:
        return Verdict.REPEATED if block < fence.next_block else Verdict.AHEAD
    return Verdict.SHOW if fence.shown_epoch == epoch else Verdict.RECORD_FIRST


def lateness_s(arrived: float, due: float | None) -> float | None:
    """How late a block came, 0 for one on time; None where none was due."""
    return None if due is None else max(0.0, arrived - due)


def frames_waited(late_s: float, frame_period_s: float) -> int:
    """How many frame periods somebody who watches waited for a late block."""
    return -int(-late_s // frame_period_s)
