"""What a series of measurements is in a few numbers. Pure."""

from collections.abc import Sequence
from typing import Any


def summary(values: Sequence[float]) -> dict[str, Any] | None:
    """Return number, median, percentiles and extremes of a series; None for an empty one."""
    if not values:
        return None
    shares = {"min": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    ordered = sorted(values)
    return {"n": len(ordered)} | {name: round(_quantile(ordered, share), 4) for name, share in shares.items()}


def median_of(values: Sequence[float]) -> float | None:
    """Return the median; None for an empty series."""
    return _quantile(sorted(values), 0.5) if values else None


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile, linear between the two nearest."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
