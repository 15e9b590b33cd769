"""Quantiles and intervals of what was measured. Pure."""

import random
from collections.abc import Sequence
from statistics import median
from typing import Any

RESAMPLES = 4000


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, linear between the two nearest. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values have no quantile")
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Return number, quartiles, 90th percentile and extremes; only the number where there are none."""
    if not values:
        return {"n": 0}
    shares = {"min": 0.0, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {"n": len(values)} | {name: round(quantile(values, share), digits) for name, share in shares.items()}


def median_interval(values: Sequence[float], *, seed: int = 1, level: float = 0.95) -> tuple[float, float]:
    """Return the bootstrap interval of the median (percentile method)."""
    rng = random.Random(seed)
    medians = [median(rng.choices(values, k=len(values))) for _ in range(RESAMPLES)]
    outside = (1 - level) / 2
    return quantile(medians, outside), quantile(medians, 1 - outside)
