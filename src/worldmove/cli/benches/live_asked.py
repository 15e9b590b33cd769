"""What a live loop is to be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAsked:
    """What a run is to be. A segment has so many moves; one without any follows each."""

    moves: int
    every: int
    """Blocks between two moves."""
    segment: int
    residents: int
    after: int
    """Blocks played on after the last move."""
    control: float = 1.0
    """For each block of a segment with moves, so many in the one without that follows."""
    strategy: str | None = None
    sessions: int = 1
    """Worlds that are moved, at once."""
    within_s: float = float("inf")
    """No segment of moves begins later than this, from the first on: what is missing then is a goal missed."""
    replay_s: float = 1e6
    """How long records may be computed anew: what is not over then is a goal missed, and the rest is kept."""
