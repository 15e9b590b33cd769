"""The least bandwidth at which a strategy is admitted, found by asking for plans; and links beside it."""

from collections.abc import Callable, Mapping
from typing import Any

LEAST_MBIT, MOST_MBIT = 0.01, 400_000.0
HALVINGS = 24
BESIDE = {"below": 0.95, "above": 1.05}
"""How far from the least bandwidth is moved: block times and the horizon are measured anew each time."""

Plan = Callable[[str], Mapping[str, Any]]
"""By the link's name."""


def least_mbit(plan: Plan, strategy: str) -> float | None:
    """Return the least bandwidth in Mb/s at which a strategy is admitted now; None where none up to the most is."""

    def admits(mbit: float) -> bool:
        return bool(verdict_of(plan(link_of(mbit)), strategy)["admitted"])

    low, high = LEAST_MBIT, MOST_MBIT
    if not admits(high):
        return None
    if admits(low):
        return low
    for _ in range(HALVINGS):
        middle = float((low * high) ** 0.5)
        low, high = (low, middle) if admits(middle) else (middle, high)
    return high


def link_of(mbit: float) -> str:
    """Return a bandwidth as a link is named."""
    for unit, size in (("gbit", 1e3), ("mbit", 1.0)):
        if mbit >= size:
            return f"{mbit / size:.3f}{unit}"
    return f"{mbit * 1e3:.3f}kbit"


def verdict_of(plan: Mapping[str, Any], strategy: str) -> Mapping[str, Any]:
    """Return what a plan says of a strategy."""
    found: Mapping[str, Any] = next(each for each in plan["strategies"] if _slug(each) == strategy)
    return found


def _slug(said: Mapping[str, Any]) -> str:
    return str(said["strategy"]).replace(" ", "-")
