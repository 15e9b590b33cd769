"""Whether one more round is worth its time while a session plays on, or the boundary is, or neither. Pure.

A round pulls what was seen to change. While it is pulled more is written: what a round leaves is what becomes new
during it, and no more than what changes at all. So rounds gain on the engine where the path is faster than new content
comes. All of it is measured, and what is not measured yet is found out by another round.
"""

from dataclasses import dataclass
from enum import Enum

from worldmove.units import bytes_text


class Next(Enum):
    """What a destination does after a round."""

    ROUND = "round"
    BOUNDARY = "boundary"
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecopyConfig:
    """When rounds end."""

    max_rounds: int = 8
    least_gain: float = 0.1
    """The share of what is left that a further round has to save."""
    reserve_s: float = 1.0
    """Of the time that there is, what is kept for the boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known before a round. Bytes, seconds; None is not known."""

    num_rounds: int
    state_bytes: int
    changing_bytes: int | None = None
    """What was seen to change from one round to the next, moved or new: a further round pulls that. None: all of it."""
    new_bytes_per_s: float | None = None
    """How fast rows come that the destination holds nowhere. Takes two rounds to be known."""
    path_bytes_per_s: float | None = None
    """Of the rounds so far."""
    round_s: float = 0.0
    """From the beginning of the last round until now."""
    time_left_s: float
    """Until the patience of the move is over."""
    affordable_bytes: int | None = None
    """What may be pulled at the boundary. None: whatever is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is done next, and why: a sentence. ``left_bytes``: what a boundary now would pull; None is not known."""

    next: Next
    why: str
    left_bytes: int | None = None


def decide(seen: Seen, config: PrecopyConfig) -> Verdict:
    """Return what a destination does next."""
    if not seen.num_rounds:
        return _first(seen, config)
    left = _left(seen.round_s, seen)
    if left is not None and seen.affordable_bytes is not None and left <= seen.affordable_bytes:
        return Verdict(next=Next.BOUNDARY, why="what is left fits into the pause", left_bytes=left)
    took_s = _pulled(seen) / seen.path_bytes_per_s if seen.path_bytes_per_s else 0.0
    saved = 0 if left is None else left - (_left(took_s, seen) or 0)
    if took_s + config.reserve_s > seen.time_left_s:
        return _last(seen, left, "there is no time for another round")
    if seen.num_rounds >= config.max_rounds:
        return _last(seen, left, f"{seen.num_rounds} rounds were not enough")
    if left is None:
        return Verdict(next=Next.ROUND, why="one round does not show what changes")
    return _more(left, saved, seen, config)


def _more(left: int, saved: int, seen: Seen, config: PrecopyConfig) -> Verdict:
    if saved <= config.least_gain * left:
        return _last(seen, left, "another round would leave as much")
    return Verdict(next=Next.ROUND, why=f"another round saves {bytes_text(saved)}", left_bytes=left)


def _first(seen: Seen, config: PrecopyConfig) -> Verdict:
    needed_s = seen.state_bytes / seen.path_bytes_per_s if seen.path_bytes_per_s else 0.0
    if needed_s + config.reserve_s > seen.time_left_s:
        return Verdict(next=Next.GIVE_UP, why="there is no time to bring its state over once")
    return Verdict(next=Next.ROUND, why="nothing of it is there yet")


def _pulled(seen: Seen) -> int:
    """Return what one more round would pull."""
    return seen.state_bytes if seen.changing_bytes is None else seen.changing_bytes


def _left(age_s: float, seen: Seen) -> int | None:
    """Return what differs from something that began to be pulled so long ago."""
    if seen.new_bytes_per_s is None or seen.changing_bytes is None:
        return None
    return int(min(seen.changing_bytes, seen.new_bytes_per_s * age_s))  # a path that all but stands: an age without end


def _last(seen: Seen, left: int | None, why: str) -> Verdict:
    """There are no more rounds: go to the boundary with what is left, unless that is more than it bears."""
    if seen.affordable_bytes is None:
        return Verdict(next=Next.BOUNDARY, why=why, left_bytes=left)
    too_much = f"{bytes_text(left) if left is not None else 'all of it, for all that is known,'} would be left"
    most = bytes_text(seen.affordable_bytes)
    return Verdict(next=Next.GIVE_UP, why=f"{why}: {too_much}, and {most} fit into the pause", left_bytes=left)
