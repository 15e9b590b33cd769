"""Reports of moves that were, for the tests of what is learned from them."""

from dataclasses import replace
from typing import Any

from worldmove.fleet.past import Route
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime

HASHES = (20e9, 10e9)
TCP = Route(source="a", destination="b", transport="tcp")


def phase(side: str, name: str, start_s: float, end_s: float) -> PhaseTime:
    return PhaseTime(side=side, name=name, start_s=start_s, end_s=end_s)


def moved(rate: float = 1e9, transport: str = "tcp", num_bytes: int = 100_000_000, **changes: Any) -> MoveReport:
    """A move that froze for 3 ms, said so for 1 ms, landed at a rate, installed for 5 ms, and ended 8 ms after."""
    landed = 0.004 + num_bytes / rate
    proven = landed + 0.005 + num_bytes / HASHES[1]
    told = MoveReport(
        session="s",
        attempt="00000001-x",
        source="a",
        destination="b",
        outcome=Outcome.COMMITTED,
        reason="done",
        detail="",
        epoch=2,
        tries=1,
        transport=transport,
        started_at=5.0,
        took_s=1.0,
        num_bytes=num_bytes,
        pulled_bytes=num_bytes,
        pause_s=proven + 0.008,
        phases=(
            phase("source", "freeze", 0.0, 0.003),
            phase("destination", "land", 0.004, landed),
            phase("source", "second_digest", landed, landed + num_bytes / HASHES[0]),
            phase("destination", "verify", landed + 0.005, proven),
            phase("destination", "promote", proven + 0.007, proven + 0.008),
        ),
    )
    return replace(told, **changes)


def with_rows(told: MoveReport) -> MoveReport:
    """The same move, with 10 ms of digesting rows, 1 ms on the way, 2 of looking for them and 2 of moving some."""
    later = [replace(p, start_s=p.start_s + 0.014, end_s=p.end_s + 0.014) for p in told.phases if p.name != "freeze"]
    own = (
        phase("source", "rows", 0.003, 0.013),
        phase("destination", "reconcile", 0.014, 0.016),
        phase("destination", "moves", 0.016, 0.018),
    )
    pause_s = None if told.pause_s is None else told.pause_s + 0.014
    return replace(told, phases=(told.phases[0], *own, *later), pause_s=pause_s)


def replayed(halted_s: float) -> MoveReport:
    """A replay of 100 MB that froze for 3 ms, and ended 8 ms after both ends had proven what they stand at."""
    proven = max(0.003 + 2 * 0.005, halted_s + 0.010)
    phases = (
        phase("destination", "halt", -0.4, halted_s),
        phase("destination", "verify", halted_s, halted_s + 0.010),
        phase("source", "freeze", 0.0, 0.003),
        phase("source", "second_digest", 0.008, 0.013),
        phase("destination", "wait_proof", halted_s + 0.010, proven),
        phase("destination", "commit", proven, proven + 0.008),
    )
    return moved(strategy="replay", phases=phases, pause_s=proven + 0.008)
