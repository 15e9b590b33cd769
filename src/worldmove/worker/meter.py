"""What a worker measured of itself, for admission: block times and turns, and the rates of its hash and paths."""

from collections import deque
from collections.abc import Sequence

NUM_KEPT = 256
HIGH = 0.95
"""The quantile of block times that is told: an offer names it, and each sign of life."""


class Meter:
    """Recent block times of one worker, and the rates that its warm-up measured."""

    def __init__(self, rates: dict[str, float]) -> None:
        self._rates = dict(rates)
        self._blocks: deque[float] = deque(maxlen=NUM_KEPT)
        self._turns: deque[float] = deque(maxlen=NUM_KEPT)
        self._told_s = 0.0

    def block(self, compute_s: float) -> None:
        """Record one owner's block."""
        self._blocks.append(compute_s)

    def turn(self, took_s: float) -> None:
        """Record for how long a block has kept the engine: handed over, computed, its pictures copied, let go."""
        self._turns.append(took_s)

    @property
    def turn_s(self) -> float:
        """By how much that is longer than computing it, as high quantiles of both say; 0 before the first block."""
        return max(0.0, _quantile(self._turns, HIGH) - self.block_s(HIGH)) if self._turns else 0.0

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
        return (self._told_s or self.block_s(HIGH)) + self.turn_s

    def rates(self) -> dict[str, float]:
        """Return what the warm-up has measured: see ``worker.warm_up``, and each path's rate."""
        return dict(self._rates)


def _quantile(values: Sequence[float], quantile: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
