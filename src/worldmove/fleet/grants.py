"""Whether a move's grant stands, read from each of its session's rows in turn: a later one says nothing of it."""

from typing import Protocol

from worldmove.move.ledger_row import BY_RECLAIM, Row


class Tried(Protocol):
    """A try of a move: a plan of this server's, or a note of an earlier one's."""

    @property
    def attempt(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The session's before it; the grant makes the next one."""
        ...


def is_granted(tried: Tried, row: Row, *, before: bool) -> bool:
    """Whether a try was granted and not taken back, by its session's row and by what was known ``before`` that row.

    Taken back is what is reclaimed in the epoch right after the grant: its owner had shown nothing. Who owns the
    session after that does so by another's doing, and not by this try's, though it be the same destination.
    """
    return row.granted_by == tried.attempt or (before and not is_taken_back(tried, row))


def is_taken_back(tried: Tried, row: Row) -> bool:
    """Whether a row is the one by which a try that was granted is taken back."""
    return (row.granted_by, row.epoch) == (BY_RECLAIM, tried.epoch + 2)
