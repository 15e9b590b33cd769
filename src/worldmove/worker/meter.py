"""What a worker measured of itself, for admission: block times and turns, and the rates of its hash and paths."""

from collections import deque
from collections.abc import Collection

from worldmove.worker.long_run import in_the_long_run

NUM_KEPT = 256
HIGH = 0.95
"""The quantile of block times that is told: an offer names it, and each sign of life."""


class Meter:
    """Recent block times of one worker, and the rates that its warm-up measured."""

    def __init__(self, rates: dict[str, float]) -> None:
        self._rates = dict(rates)
        self._blocks: deque[float] = deque(maxlen=NUM_KEPT)
        self._beside: deque[float] = deque(maxlen=NUM_KEPT)
        self._told_s = 0.0

    def block(self, compute_s: float) -> None:
        """Record one owner's block."""
        self._blocks.append(compute_s)

    def turn(self, beside_s: float) -> None:
        """Record for how long a block has kept the engine beside its computing: handed over, copied, let go."""
        self._beside.append(beside_s)

    @property
    def turn_s(self) -> float:
        """What that takes in the long run; 0 before the first block."""
        return in_the_long_run(self._beside)

    def block_s(self, quantile: float) -> float:
        """Return a quantile of the recent block times; that of the warm-up while none was played."""
        if not self._blocks:
            return self._rates.get("block_s", 0.0)
        return _quantile(self._blocks, quantile)

    def told(self, block_s: float) -> None:
        """The server has said what a block takes here beside the worlds of other workers on this device; 0: it has not.

        What is measured here says too much then: a block that another one was beside throughout is not followed by
        a second such one, or the device would be theirs alone.
        """
        self._told_s = block_s

    @property
    def spare_s(self) -> float:
        """What a spare block is reckoned to take, its turn at the engine included."""
        return (self._told_s or self.block_s(HIGH)) + (_quantile(self._beside, HIGH) if self._beside else 0.0)

    def rates(self) -> dict[str, float]:
        """Return what the warm-up has measured: see ``worker.warm_up``, and each path's rate."""
        return dict(self._rates)


def _quantile(values: Collection[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
