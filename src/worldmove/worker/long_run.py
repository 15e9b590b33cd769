"""What each of many blocks takes in the long run, of times that scatter. Pure."""

from collections.abc import Collection
from math import fsum, sqrt

FEW = 8
"""Of fewer the longest counts: they say little of others."""
BOUND = 2.0
"""Standard errors of the mean that are added to it."""


def in_the_long_run(times_s: Collection[float]) -> float:
    """Return the mean of times and hardly less than that of all others; 0 of none.

    A high quantile is for one block that has to be in time. Of a hundred that follow each other, where one in twenty
    takes twice as long, it says nearly twice what they take together.
    """
    number = len(times_s)
    if number < FEW:
        return max(times_s, default=0.0)
    mean = fsum(times_s) / number
    variance = fsum((each - mean) ** 2 for each in times_s) / (number - 1)
    return mean + BOUND * sqrt(variance / number)
