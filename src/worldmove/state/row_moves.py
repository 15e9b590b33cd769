"""Moves of rows inside one arena: from where they were to where they belong."""

from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.state.rows import Numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Moves in the order in which they are done: from ``sources`` to ``destinations``, ``lengths`` bytes each.

    Offsets from ``spare_at`` on lie in a spare of ``spare_bytes``. ``waves``: ascending; equal ones may go at once.
    """

    sources: Numbers
    destinations: Numbers
    lengths: Numbers
    waves: Numbers
    spare_at: int
    spare_bytes: int = 0

    def __len__(self) -> int:
        return len(self.sources)


def apply(moves: Moves, memory: memoryview, spare: memoryview) -> None:
    """Do the moves on host memory; ``spare`` has ``spare_bytes``."""
    for source, destination, length in _plain(moves):
        given, at = (memory, source) if source < moves.spare_at else (spare, source - moves.spare_at)
        taken, to = (memory, destination) if destination < moves.spare_at else (spare, destination - moves.spare_at)
        taken[to : to + length] = given[at : at + length]  # a memmove, where they overlap


def _plain(moves: Moves) -> Sequence[tuple[int, int, int]]:
    return list(zip(moves.sources.tolist(), moves.destinations.tolist(), moves.lengths.tolist(), strict=True))
