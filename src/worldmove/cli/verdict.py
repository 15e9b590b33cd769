"""What came of a verification, for people and for programs. Pure."""

from dataclasses import dataclass, field
from typing import Any

from worldmove.serve.record_file import Ending, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first thing that is not as it was recorded. ``block`` is None for the opening state."""

    block: int | None
    what: str
    """``opening state``, ``frame``, ``state`` or ``move``."""
    frame: int | None = None
    leaf: str | None = None
    """The first leaf that differs, at the state after ``leaf_after``; None where no state was compared."""
    leaf_after: int | None = None
    attempt: str | None = None


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What was compared, and the first difference."""

    session: str
    num_blocks: int = 0
    num_frames: int = 0
    num_states: int = 0
    num_moves: int = 0
    """Committed moves whose boundary states were compared."""
    num_moves_recorded: int = 0
    difference: Difference | None = None
    notes: list[str] = field(default_factory=list)
    read: Progress


def fields(verdict: Verdict) -> dict[str, Any]:
    """Return everything, for programs."""
    found = verdict.difference
    return {
        "session": verdict.session,
        "equal": found is None,
        "num_blocks": verdict.num_blocks,
        "num_frames": verdict.num_frames,
        "num_states": verdict.num_states,
        "num_moves": verdict.num_moves,
        "num_moves_recorded": verdict.num_moves_recorded,
        "ending": verdict.read.ending.value,
        "ended": verdict.read.why,
        "num_bytes_dropped": verdict.read.num_dropped,
        "difference": None
        if found is None
        else {
            "block": found.block,
            "what": found.what,
            "frame": found.frame,
            "leaf": found.leaf,
            "leaf_after_block": found.leaf_after,
            "attempt": found.attempt,
        },
    }


def sentence(verdict: Verdict) -> str:
    """Say it in one line."""
    found = verdict.difference
    if found is None:
        blocks, moves = _count(verdict.num_blocks, "block"), _count(verdict.num_moves, "move")
        return f"equal over {blocks} and {moves}"
    return f"different at {_place(found)}{_leaf(found)}; equal over the {_count(verdict.num_blocks, 'block')} before"


def ending_notes(read: Progress) -> list[str]:
    """Say how the record ends, where that is not with its end."""
    match read.ending:
        case Ending.WHOLE:
            return []
        case Ending.OPEN:
            return ["The record has no end: it was still being written, or was cut between two entries."]
        case Ending.CUT:
            return [f"The record was cut: its last {read.num_dropped} bytes are no whole entry, and were dropped."]


def unexplained_note(block: int, epoch: int, number: int) -> str:
    """Say that epochs up to that of a block were begun by no move whose report is there."""
    return (
        f"Block {block} is the first of epoch {epoch}, and of the epochs up to it {number:,} began without a committed "
        "move in the record: another copy took over, or the record ends before that move's report. Of these, only what "
        "was shown is compared."
    )


def _place(found: Difference) -> str:
    match found.what:
        case "opening state":
            return "the opening state"
        case "frame":
            return f"block {found.block}, frame {found.frame}"
        case "move":
            return f"the move {found.attempt} before block {found.block}"
    return f"the state after block {found.block}"


def _leaf(found: Difference) -> str:
    if found.leaf is None:
        return ""
    where = "" if found.leaf_after == found.block and found.what == "state" else f" after block {found.leaf_after}"
    return f" (leaf {found.leaf}{where})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
