"""Blocks of a live loop, told apart by what went on while each was computed: a move, no move just now, or none at all.

Instants are seconds of one clock.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worldmove.cli.benches.tap import Arrival

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a run: the moved world's first block, and the one after its last; from when until when.

    ``others``: the same blocks of the other moved worlds.
    """

    with_moves: bool
    blocks: tuple[int, int]
    span: Span
    others: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """Some worlds' blocks by what went on."""

    during: list[Arrival]
    """While a move was under way, from its order to its answer."""
    between: list[Arrival]
    """In a segment with moves, but beside them."""
    control: list[Arrival]
    """In a segment without any."""


def parted(worlds: Sequence[Sequence[Arrival]], segments: Sequence[Segment], moves: Sequence[Span]) -> Parted:
    """Tell blocks apart. One that touches an edge of a segment is in none."""
    found = Parted(during=[], between=[], control=[])
    for arrival in (arrival for world in worlds for arrival in world):
        span = (arrival.arrived - arrival.compute_s, arrival.arrived)
        segment = next((each for each in segments if each.span[0] <= span[0] and span[1] <= each.span[1]), None)
        if segment is None:
            continue
        if not segment.with_moves:
            found.control.append(arrival)
        elif any(begin < span[1] and span[0] < end for begin, end in moves):
            found.during.append(arrival)
        else:
            found.between.append(arrival)
    return found


def beside(blocks: Sequence[Arrival], moved: Sequence[Arrival]) -> Mapping[bool, Sequence[Arrival]]:
    """Tell blocks apart by whether the moved world was at the same worker: there the two are computed in turn, and
    else at once, on one device perhaps.
    """
    came = [arrival.arrived for arrival in moved]
    found: dict[bool, list[Arrival]] = {True: [], False: []}
    for block in blocks:
        newest = bisect_right(came, block.arrived) - 1
        found[newest >= 0 and moved[newest].worker == block.worker].append(block)
    return found


def of_segments(
    blocks: Sequence[Arrival], segments: Sequence[Segment], *, with_moves: bool, world: int = 0
) -> list[Arrival]:
    """Return a moved world's blocks of one kind of segment, by their numbers. ``world``: which of them it is."""
    of_kind = [segment for segment in segments if segment.with_moves is with_moves]
    ranges = [range(*(segment.blocks, *segment.others)[world]) for segment in of_kind]
    return [arrival for arrival in blocks if any(arrival.block in each for each in ranges)]


def late(blocks: Sequence[Arrival]) -> list[Arrival]:
    """Return the blocks that came after they were due."""
    return [arrival for arrival in blocks if arrival.margin_s is not None and arrival.margin_s < 0]
