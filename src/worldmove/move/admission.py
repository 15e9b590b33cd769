"""Whether a move can be done before the next block is due: measurements in, a verdict with its terms out. Pure.

    freeze + max(copy, first pass) + max(second pass, verify) + commit <= horizon

The two maxima are what runs side by side: the source's first pass beside the copy, its second beside the
destination's verifying pass. A measurement that is not there is a reject: a guess would be paid for by a player.
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
    path_rate: float | None
    """What was measured of this path between these two workers: never the memory's, nor a nominal one."""
    destination_hash_rate: float | None
    horizon_s: float | None
    """Time from a block's end to the next block's due time, less its compute time. Infinite where nobody waits."""
    num_slots_free: int | None = None
    """At the destination. None: its own answer to the offer decides."""
    environment_differs: tuple[str, ...] = ()
    """The fields in which the two ends differ, each as a sentence."""
    same_worker: bool = False
    ledger_healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The terms in seconds, what they have to fit into, and why not (empty: admitted)."""

    terms: Mapping[str, float]
    horizon_s: float | None
    reason: str = ""
    detail: str = ""
    cheapest: str = ""
    """What is the least that would have to change for the move to be admitted; empty where nothing of it could."""

    @property
    def admitted(self) -> bool:
        return not self.reason

    @property
    def expected_s(self) -> float:
        """The expected pause."""
        return sum(self.terms.values())

    @property
    def slack_s(self) -> float | None:
        """What is left of the horizon; below zero, what is missing. None where it is not known."""
        return None if self.horizon_s is None or not self.terms else self.horizon_s - self.expected_s


def admit(measured: Measured) -> Verdict:
    """Compare what stands in the way, then the expected pause with the horizon."""
    reason, detail = _in_the_way(measured)
    if reason:
        return Verdict(terms={}, horizon_s=measured.horizon_s, reason=reason, detail=detail)
    terms, horizon_s = _terms(measured), measured.horizon_s or 0.0
    expected_s = sum(terms.values())
    if expected_s <= horizon_s:
        return Verdict(terms=terms, horizon_s=horizon_s)
    largest = max(terms, key=lambda name: terms[name])
    detail = (
        f"moving {bytes_text(measured.num_bytes)} is expected to take {seconds_text(expected_s)}, and the next "
        f"block is due in {seconds_text(horizon_s)}; the largest part is {largest}, {seconds_text(terms[largest])}"
    )
    cheapest = _cheapest(measured, terms, expected_s - horizon_s)
    return Verdict(terms=terms, horizon_s=horizon_s, reason="too_slow", detail=detail, cheapest=cheapest)


def _in_the_way(measured: Measured) -> tuple[str, str]:
    """Return what forbids the move whatever its speed: a word and a sentence, or two empty texts."""
    if measured.same_worker:
        return "same_worker", "it is there already"
    if not measured.ledger_healthy:
        return "ledger", "the ledger does not answer, and no move starts meanwhile"
    if measured.environment_differs:
        return "environment", "; ".join(measured.environment_differs)
    if measured.num_slots_free == 0:
        return "no_slot", "all places there are taken"
    unknown = _unknown(measured)
    return ("not_measured", f"not measured yet: {', '.join(unknown)}") if unknown else ("", "")


def _unknown(measured: Measured) -> list[str]:
    named = {
        "the source's hash rate": measured.source_hash_rate,
        "the rate of the path between the two workers": measured.path_rate,
        "the destination's hash rate": measured.destination_hash_rate,
        "the time until the next block is due": measured.horizon_s,
    }
    return [name for name, value in named.items() if value is None]


def _terms(measured: Measured) -> dict[str, float]:
    size = measured.num_bytes
    source_pass_s = size / (measured.source_hash_rate or 1.0)
    return {
        "freeze": FREEZE_S,
        "copy": max(size / (measured.path_rate or 1.0), source_pass_s),
        "verify": max(size / (measured.destination_hash_rate or 1.0), source_pass_s),
        "commit": COMMIT_S,
    }


def _cheapest(measured: Measured, terms: Mapping[str, float], missing_s: float) -> str:
    """Say by what factor the slowest rate would have to be faster, if that alone could do it; else the horizon."""
    rates = {
        "copy": measured.path_rate or 1.0,
        "hash at the source": measured.source_hash_rate or 1.0,
        "hash at the destination": measured.destination_hash_rate or 1.0,
    }
    slowest = min(rates, key=lambda name: rates[name])
    for factor in (1.25, 1.5, 2.0, 3.0, 4.0, 8.0):
        if _saves(measured, slowest, factor, terms) >= missing_s:
            return f"a {slowest} that is {factor:g} times as fast"
    return f"{seconds_text(missing_s)} more until the next block is due (a longer buffer at the client)"


def _saves(measured: Measured, which: str, factor: float, terms: Mapping[str, float]) -> float:
    def rate(name: str, value: float | None) -> float:
        return (value or 1.0) * (factor if name == which else 1.0)

    source_pass_s = measured.num_bytes / rate("hash at the source", measured.source_hash_rate)
    copy_s = max(measured.num_bytes / rate("copy", measured.path_rate), source_pass_s)
    verify_s = max(measured.num_bytes / rate("hash at the destination", measured.destination_hash_rate), source_pass_s)
    return terms["copy"] + terms["verify"] - copy_s - verify_s
