"""How often somebody may do something: so many at once, so many a second for ever after. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``burst`` at once, ``per_s`` a second in the long run."""

    burst: float
    per_s: float


class Allowance:
    """What is left of a pace for one party. Time comes in, seconds on any one clock that never goes back."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._left = pace.burst
        self._at: float | None = None

    def take(self, now: float, num: float = 1.0) -> bool:
        """Take ``num`` if so many are left; say whether they were."""
        self._refill(now)
        if self._left < num:
            return False
        self._left -= num
        return True

    def owe(self, now: float, num: float = 1.0) -> float:
        """Take ``num`` in any case; return for how many seconds nothing more should be done, mostly 0."""
        self._refill(now)
        self._left -= num
        return max(0.0, -self._left / self._pace.per_s)

    def _refill(self, now: float) -> None:
        gone_s = 0.0 if self._at is None else max(0.0, now - self._at)
        self._left = min(self._pace.burst, self._left + gone_s * self._pace.per_s)
        self._at = now
