"""Whether a move can be done before the next block is due: measurements in, a verdict with its terms out. Pure.

    freeze + copy + source's second pass + verify + commit <= horizon

The source's first pass runs beside the copy and costs nothing here. A measurement that is not there is a
reject: a guess would be paid for by a player.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from worldmove.units import bytes_text, seconds_text

FREEZE_S = 0.004
"""From a block's end to its resolved state, and the messages up to the first byte."""
COMMIT_S = 0.010
"""Install, proof and grant: the messages and the ledger's transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What admission goes by. Rates in bytes per second; None where nothing was measured."""

    num_bytes: int
    source_hash_rate: float | None
    destination_copy_rate: float | None
    destination_hash_rate: float | None
    horizon_s: float | None
    """Time from a block's end to the next block's due time, less its compute time. Infinite where nobody waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The terms in seconds, what they have to fit into, and why not (empty: admitted)."""

    terms: Mapping[str, float]
    horizon_s: float | None
    reason: str = ""
    detail: str = ""

    @property
    def expected_s(self) -> float:
        """The expected pause."""
        return sum(self.terms.values())


def admit(measured: Measured) -> Verdict:
    """Compare the expected pause with the horizon."""
    named = {
        "the source's hash rate": measured.source_hash_rate,
        "the destination's copy rate": measured.destination_copy_rate,
        "the destination's hash rate": measured.destination_hash_rate,
        "the time until the next block is due": measured.horizon_s,
    }
    unknown = [name for name, value in named.items() if value is None]
    if unknown:
        detail = f"not measured yet: {', '.join(unknown)}"
        return Verdict(terms={}, horizon_s=measured.horizon_s, reason="not_measured", detail=detail)
    terms = _terms(measured)
    expected_s, horizon_s = sum(terms.values()), measured.horizon_s or 0.0
    if expected_s <= horizon_s:
        return Verdict(terms=terms, horizon_s=horizon_s)
    largest = max(terms, key=lambda name: terms[name])
    detail = (
        f"moving {bytes_text(measured.num_bytes)} is expected to take {seconds_text(expected_s)}, and the next "
        f"block is due in {seconds_text(horizon_s)}; the largest part is {largest}, {seconds_text(terms[largest])}"
    )
    return Verdict(terms=terms, horizon_s=horizon_s, reason="too_slow", detail=detail)


def _terms(measured: Measured) -> dict[str, float]:
    size = measured.num_bytes
    return {
        "freeze": FREEZE_S,
        "copy": size / (measured.destination_copy_rate or 1.0),
        "second pass": size / (measured.source_hash_rate or 1.0),
        "verify": size / (measured.destination_hash_rate or 1.0),
        "commit": COMMIT_S,
    }
