"""How long who watches waited for a move: the largest lateness of a block while it was under way. Pure.

A block counts from the beginning of the move's first try until it is over: to the first block of a newer epoch, or,
where the move was given up, to the next block shown after that. It may be the old owner's: one that stalls in a move
makes its own last blocks late, and the new rhythm after them hides it from the first block of the new owner.
"""

from dataclasses import dataclass

from worldmove.fleet.reports import Outcome


@dataclass(slots=True, kw_only=True)
class Gap:
    """One move's. ``epoch``: the session's when the move began."""

    attempt: str
    """The newest try."""
    epoch: int
    late_s: float | None = None
    """The largest lateness so far, 0 for on time; None while no block was due."""
    ended: Outcome | None = None
    """How the move ended, once that is known."""
    is_over: bool = False

    def shown(self, epoch: int, late_s: float | None) -> None:
        """Count a block that was shown; ``late_s`` is None where it was not due."""
        if not self.is_over:
            self._count(late_s)
            self.is_over = epoch > self.epoch or self.ended is Outcome.ABORTED

    def close(self, overdue_s: float | None) -> None:
        """Wait no longer. A block that is due and not here counts with what it is late by now."""
        if not self.is_over:
            self._count(overdue_s)
            self.is_over = True

    def _count(self, late_s: float | None) -> None:
        if late_s is not None:
            self.late_s = max(late_s, self.late_s or 0.0)
