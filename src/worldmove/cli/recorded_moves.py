"""The moves that a record has, by the block before which each took place. Pure.

A move is frozen once every block before its boundary has been shown. So all moves between two blocks that were shown
stand at one boundary, though a world may be moved twice there, or moved and taken back; those after the last one stand
at the record's end.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.fleet.reports import MoveReport, Outcome

OPENING_EPOCH = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMoves:
    """Of one record."""

    num_ended: int
    """However they ended."""
    committed: tuple[MoveReport, ...]
    """By the epoch that each began."""

    def between(self, before: int | None, now: int | None) -> tuple[MoveReport, ...]:
        """Return those that began an epoch after ``before`` and up to ``now``; None: without such a bound."""
        first = 0 if before is None else bisect_right(self.committed, before, key=begun_epoch)
        end = None if now is None else bisect_right(self.committed, now, key=begun_epoch)
        return self.committed[first:end]

    def num_unexplained(self, before: int | None, now: int) -> int:
        """Return how many epochs between two blocks no committed move of the record began."""
        opened = OPENING_EPOCH if before is None else before
        begun = {begun_epoch(report) for report in self.between(opened, now)}
        return max(0, now - opened) - len(begun)


def recorded_moves(reports: Sequence[MoveReport]) -> RecordedMoves:
    """Return a record's moves, as they were read."""
    committed = [report for report in reports if report.outcome is Outcome.COMMITTED]
    return RecordedMoves(num_ended=len(reports), committed=tuple(sorted(committed, key=begun_epoch)))


def begun_epoch(move: MoveReport) -> int:
    """Return the epoch that a committed move began; the report's own is a later one where a copy took over since."""
    return move.epoch if move.epoch_before is None else move.epoch_before + 1
