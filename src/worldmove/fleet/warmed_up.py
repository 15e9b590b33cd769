"""What a move is reckoned with that no move has measured yet: what its two ends said in their hellos. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from worldmove.move.measured import Final, Fixed, Measured

Rates = Mapping[str, float]
"""What a worker measured before its hello (``worker.reports.Hello.rates``)."""


def warmed_up(here: Rates, there: Rates) -> Measured:
    """Return what is known of a source and a destination before any move: of no session, no path and no load."""
    return Measured(
        num_bytes=0,
        source_hash_rate=_rate(here, "hash_bytes_per_s"),
        path_rate=None,
        destination_hash_rate=_rate(there, "hash_bytes_per_s"),
        horizon_s=None,
        row_rate=_lesser(_rate(here, "row_bytes_per_s"), _rate(there, "row_bytes_per_s")),
        copy_rate=_lesser(_rate(here, "copy_bytes_per_s"), _rate(there, "copy_bytes_per_s")),
        dirty_bytes=_count(here.get("dirty_bytes")),
        new_bytes=_count(here.get("new_bytes")),
        further_bytes=_count(here.get("further_bytes")),
        final=_final(here, there),
        period_s=there.get("period_s"),
        block_s=there.get("block_s"),
        fixed=_fixed(here, there),
    )


def _fixed(here: Rates, there: Rates) -> Fixed:
    """Return how the two workers' own warm-ups have frozen and installed."""
    start = Fixed()
    if "freeze_s" not in here or "install_s" not in there:
        return start
    return replace(
        start,
        freeze_s=here["freeze_s"],
        install_s=there["install_s"],
        is_measured=True,
        of="to start with: as it took in the workers' warm-ups",
    )


def _rate(rates: Rates, name: str) -> float | None:
    """Return a rate; one that was measured over no bytes, of a state that has none, is not known."""
    return rates.get(name) or None


def _lesser(here: float | None, there: float | None) -> float | None:
    """Return the slower of the two ends' rates: each does its part."""
    return None if here is None or there is None else min(here, there)


def _final(here: Rates, there: Rates) -> Final | None:
    """Return what an engine called final before its canary's block ended; None of one that says nothing.

    With what the other end's has computed by itself, and computed right, of what that block had handed on.
    """
    if "final_bytes" not in here:
        return None
    return Final(
        num_bytes=int(here["final_bytes"]),
        window_s=here["final_window_s"],
        last_bytes=int(here["final_last_bytes"]),
        followed_bytes=int(here.get("followed_bytes", 0.0)) if "follow_s" in there else 0,
        follow_s=there.get("follow_s", 0.0),
    )


def _count(measured: float | None) -> int | None:
    return None if measured is None else int(measured)
