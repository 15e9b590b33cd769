"""What is the least that would have to change for a rejected move to be admitted. Pure.

A verdict gets no worse as a rate, the horizon or the patience grows, nor as block times and load shrink. So for one
measurement alone the least change is found by halving, and what is proposed has been tried: it admits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, inf, isfinite, log10
from typing import Any

from worldmove.move.admission import admit
from worldmove.move.measured import Measured
from worldmove.move.strategy import Strategy
from worldmove.move.terms import size_text
from worldmove.units import seconds_text

MOST = 1e4
"""No change by more than this factor is proposed: it would be another machine."""
HALVINGS = 40
MOST_BUFFER_S = 2.0
"""No client's buffer is proposed that a player would feel as another world's."""
LEAST = 1e-9
"""As good as nothing: where this admits a move, no other measurement was in its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One measurement, changed so far that the move is admitted."""

    field: str
    value: float
    factor: float
    """How many times better than it is: by this, one is cheaper than another."""
    sentence: str

    def applied(self, measured: Measured) -> Measured:
        """Return the measurements as they would be."""
        changed: dict[str, Any] = {self.field: self.value}
        return replace(measured, **changed)


LONGER = "more until the next block is due (a longer buffer at the client)"

Say = Callable[[float, float], str]

GROWING: tuple[tuple[str, Say], ...] = (
    ("num_slots_free", lambda _now, _then: "one free place at the destination"),
    ("num_source_slots_free", lambda _now, _then: "one free place at the source"),
    ("path_rate", lambda now, then: _faster("a path of", now, then)),
    ("source_hash_rate", lambda now, then: _faster("a source that hashes", now, then)),
    ("destination_hash_rate", lambda now, then: _faster("a destination that hashes", now, then)),
    ("row_rate", lambda now, then: _faster("rows digested at", now, then)),
    ("copy_rate", lambda now, then: _faster("memory copied at", now, then)),
    ("patience_s", lambda now, then: f"{seconds_text(then - now)} more patience before the pause"),
    ("horizon_s", lambda now, then: f"{seconds_text(then - now)} {LONGER}"),
)
SHRINKING: tuple[tuple[str, Say], ...] = (
    ("block_s", lambda now, then: f"blocks of {seconds_text(then)} at the destination (now {seconds_text(now)})"),
    ("utilisation", lambda now, then: f"a destination that is {then:.0%} busy at most (now {now:.0%})"),
)


def cheapest(measured: Measured, strategy: Strategy) -> Remedy | None:
    """Return the least change that alone would admit a move; None where it is admitted, or no single one would."""
    if admit(measured, strategy).admitted:
        return None
    found = [*_growing(measured, strategy), *_shrinking(measured, strategy)]
    return min(found, key=lambda remedy: remedy.factor, default=None)


def least(measured: Measured, strategy: Strategy, field: str, most: float = 1e18) -> float | None:
    """Return the least value of a growing measurement that admits the move, to the last bit; None if none does.

    ``field``: path_rate, another rate, horizon_s or patience_s. All else stays as it is measured.
    """

    def admits(value: float) -> bool:
        changed: dict[str, Any] = {field: value}
        return admit(replace(measured, **changed), strategy).admitted

    low, high = LEAST, most
    if admits(low):
        return low
    if not admits(high):
        return None
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if admits(middle) else (middle, high)
    return high


def _growing(measured: Measured, strategy: Strategy) -> Iterator[Remedy]:
    for field, say in GROWING:
        now: float | None = getattr(measured, field)
        if now is None or not isfinite(now):
            continue
        counted = isinstance(now, int)
        then = _enough(measured, strategy, field, float(now), counted=counted)
        if then is not None and not (field == "horizon_s" and then - now > MOST_BUFFER_S):
            factor = 1.0 if counted else then / now if now > 0 else inf
            yield Remedy(field=field, value=then, factor=factor, sentence=say(now, then))


def _enough(measured: Measured, strategy: Strategy, field: str, now: float, *, counted: bool) -> float | None:
    """Return a value that admits, in three digits, and hardly more than needed."""

    def admits(value: float) -> bool:
        changed: dict[str, Any] = {field: value}
        return admit(replace(measured, **changed), strategy).admitted

    if counted:
        return now + 1 if admits(now + 1) else None
    most = max(now, 1e-3) * MOST
    if not admits(most):
        return None
    low, high = now, most
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5 if low > 0 else high / 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    rounded = _rounded(high, ceil)
    return rounded if admits(rounded) else high


def _shrinking(measured: Measured, strategy: Strategy) -> Iterator[Remedy]:
    for field, say in SHRINKING:
        now: float | None = getattr(measured, field)
        if not now:
            continue
        then = _little(measured, strategy, field, now)
        if then is not None:
            better = (1 - then) / max(1 - now, 1e-9) if field == "utilisation" else now / then
            yield Remedy(field=field, value=then, factor=better, sentence=say(now, then))


def _little(measured: Measured, strategy: Strategy, field: str, now: float) -> float | None:
    def admits(value: float) -> bool:
        changed: dict[str, Any] = {field: value}
        return admit(replace(measured, **changed), strategy).admitted

    low, high = now / MOST, now
    if not admits(low):
        return None
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if admits(middle) else (low, middle)
    rounded = _rounded(low, floor)
    return rounded if admits(rounded) else low


def _rounded(value: float, towards: Callable[[float], int]) -> float:
    """Return a value in three digits, on the safe side of what it is."""
    scale = 10.0 ** (2 - floor(log10(value)))
    return towards(value * scale) / scale


def _faster(what: str, now: float, then: float) -> str:
    return f"{what} {size_text(then)}/s (now {size_text(now)}/s)"
