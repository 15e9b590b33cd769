"""What must never be: each breach is a name and a sentence."""

from enum import Enum

from tests.model.book import NAMES
from tests.model.ends import GOOD, End
from worldmove.move.ledger_row import Row
from worldmove.move.protocol import SourcePhase


class Broken(Enum):
    """The invariants, as they are named everywhere."""

    I1 = "a block is shown once, by one end, and in order"
    I2 = "a frame is shown only of the owner in the epoch of that instant"
    I3 = "no two ends play in one epoch"
    I4 = "nothing is played that is unverified or was overwritten"
    I5 = "lost is not said while a complete copy lives"
    I6 = "no end gives up its copy before a newer block was shown"
    I6B = "no owner gives up the copy that it was granted"
    I7 = "the only complete copy is never told to be discarded"
    I8 = "no two ends play at once, unless one of them was suspected"
    I9 = "the owner is never behind what was shown"


def of_state(row: Row, ends: tuple[End, ...], shown: int, suspected: int) -> Broken | None:
    """Judge a state: what plays in it."""
    playing = [(worker, end) for worker, end in enumerate(ends) if end.phase is SourcePhase.LIVE]
    if any(end.content != GOOD or not end.verified for _, end in playing):
        return Broken.I4
    if len({end.epoch for _, end in playing}) < len(playing):
        return Broken.I3
    if len(playing) > 1 and not any(suspected >> worker & 1 for worker, _ in playing):
        return Broken.I8
    owners = [end for worker, end in playing if owns(row, worker, end) and end.epoch == row.epoch]
    behind = any(max(end.next, end.replays_to) < shown for end in owners)
    return Broken.I9 if behind else None


def of_step(row: Row, worker: int, before: End, after: End, *, shown: int, told: bool) -> Broken | None:
    """Judge what an end does: whether it gives up what is still needed.

    A destination that was told to gives its copy up rightly: what it may be told is judged when it is told.
    """
    if not before.is_complete or after.is_source or after.phase is before.phase:
        return None
    if before.is_source:
        return Broken.I6 if shown <= before.next else None
    return Broken.I6B if owns(row, worker, before) and not told else None


def owns(row: Row, worker: int, end: End) -> bool:
    """Whether the ledger names this end's worker, in this incarnation."""
    return (row.owner, row.incarnation) == (NAMES[worker], end.incarnation)


def current(ends: tuple[End, ...], shown: int) -> tuple[int, ...]:
    """Return who holds a complete copy that could play the next block as it is."""
    return tuple(worker for worker, end in enumerate(ends) if end.is_complete and end.acked <= shown <= reach(end))


def reach(end: End) -> int:
    """What a destination has computed ahead does not count: its commit is of its boundary."""
    return end.next if end.is_source else end.boundary
