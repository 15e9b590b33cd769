"""Cuts a move's pause into the parts that follow one another, at whichever end each of them is. Pure."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

Span = Sequence[float]
Phases = Mapping[str, Span]
"""By ``side.name``: start and end, ms from the freeze."""

STEPS: Mapping[str, str] = {
    "freeze": "quiesce, find every leaf, gather what left the arena",
    "word of the boundary": "manifest encoded; source to server to destination",
    "land": "every byte copied into the destination's arena",
    "word of the landing": "destination to server to source",
    "second pass": "the source reads its state again",
    "acknowledged": "frames not yet acknowledged, if any",
    "word of the proof": "source to server to destination; the destination's own pass, if it takes longer",
    "compare": "all groups compared",
    "commit": "destination to server, one transaction, and back",
    "granted": "the destination's state digest, if it takes longer than the commit",
    "promote": "the loop is told to compute",
}


def steps(phases: Phases) -> dict[str, float] | None:
    """Return each step's ms, in order: their sum is the pause. None where a phase is missing."""
    marks = _marks(phases)
    if marks is None:
        return None
    return {name: round(end - begin, 3) for name, (begin, end) in zip(STEPS, pairwise(marks), strict=True)}


def _marks(phases: Phases) -> list[float] | None:
    """Return the instants between the steps."""
    names = (
        ("source.freeze", 0),
        ("source.freeze", 1),
        ("destination.land", 0),
        ("destination.land", 1),
        ("source.second_digest", 0),
        ("source.second_digest", 1),
        ("source.doubt", 0),
        ("destination.wait_proof", 1),
        ("destination.commit", 0),
        ("destination.commit", 1),
        ("destination.promote", 0),
        ("destination.promote", 1),
    )
    if any(name not in phases for name, _ in names):
        return None
    return list(accumulate((phases[name][end] for name, end in names), max))  # devices may be ahead of words
