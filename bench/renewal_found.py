"""What came of a run whose world's snapshots are renewed, in figures. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.numbers import spread
from bench.under_play_found import blocks_of
from worldmove.cli.benches.live_blocks import Parted, Segment, Span, late, parted
from worldmove.cli.benches.tap import Arrival

GOAL = 0.03
"""By so much longer a resident's block may take beside a renewal."""
KINDS = ("during", "between", "control")


@dataclass(slots=True, kw_only=True)
class Found:
    """What a run brought. Instants are seconds of this host's one clock."""

    num_bytes: int = 0
    owner: Sequence[Arrival] = ()
    resident: Sequence[Arrival] = ()
    segments: list[Segment] = field(default_factory=list)
    kept: list[tuple[int, float]] = field(default_factory=list)
    """The boundary of each snapshot that was kept, and when that was seen."""


def renewals_of(found: Found) -> list[Span]:
    """Return from when until when each renewal was: its boundary is where the block before it had come."""
    came = {arrival.block: arrival.arrived for arrival in found.owner}
    return [(came[block - 1], seen_at) for block, seen_at in found.kept if block - 1 in came]


def summary_of(found: Found, goal: float = GOAL) -> dict[str, Any]:
    """Say what came out, and whether it is good. Times in ms."""
    spans = renewals_of(found)
    owner, resident = (parted([blocks], found.segments, spans) for blocks in (found.owner, found.resident))
    num_late = sum(len(late(blocks)) for told in (owner, resident) for blocks in (told.during, told.between))
    cost = cost_of(resident)
    return {
        "renewals": len(spans),
        "num_bytes": found.num_bytes,
        "renewal_ms": spread([1000 * (end - begin) for begin, end in spans]),
        "owner": {kind: blocks_of(getattr(owner, kind)) for kind in KINDS} | {"cost": cost_of(owner)},
        "resident": {kind: blocks_of(getattr(resident, kind)) for kind in KINDS} | {"cost": cost},
        "late_while_protected": num_late,
        "goal": goal,
        "goal_met": cost is not None and cost <= goal and num_late == 0,
    }


def cost_of(told: Parted) -> float | None:
    """Return by how much longer a block takes beside a renewal than without any, as a share; None: not known."""
    if not told.during or not told.control:
        return None
    there, here = (median(arrival.compute_s for arrival in blocks) for blocks in (told.during, told.control))
    return round(there / here - 1, 4) if here > 0 else None


def samples_of(found: Found) -> dict[str, Any]:
    """Return everything that was measured: blocks as number, arrival in s, margin and computing in ms."""
    return {
        "renewals_s": [[round(at, 4) for at in span] for span in renewals_of(found)],
        "kept": [[block, round(at, 4)] for block, at in found.kept],
        "segments": [[segment.with_moves, *segment.span] for segment in found.segments],
        "owner": [_row(arrival) for arrival in found.owner],
        "resident": [_row(arrival) for arrival in found.resident],
    }


def _row(arrival: Arrival) -> list[Any]:
    margin_ms = None if arrival.margin_s is None else round(1000 * arrival.margin_s, 2)
    return [arrival.block, round(arrival.arrived, 4), margin_ms, round(1000 * arrival.compute_s, 3)]
