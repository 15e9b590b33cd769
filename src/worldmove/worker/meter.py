"""What a worker measured of itself, for admission: block times, and the rates of its hash and paths."""

from collections import deque

NUM_KEPT = 256
HIGH = 0.95
"""The quantile of block times that is told: an offer names it, and each sign of life."""


class Meter:
    """Recent block times of one worker, and the rates that its warm-up measured."""

    def __init__(self, rates: dict[str, float]) -> None:
        self._rates = dict(rates)
        self._blocks: deque[float] = deque(maxlen=NUM_KEPT)
        self._told_s = 0.0

    def block(self, compute_s: float) -> None:
        """Record one owner's block."""
        self._blocks.append(compute_s)

    def block_s(self, quantile: float) -> float:
        """Return a quantile of the recent block times; that of the warm-up while none was played."""
        if not self._blocks:
            return self._rates.get("block_s", 0.0)
        ordered = sorted(self._blocks)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]

    def told(self, block_s: float) -> None:
        """The server has said what a block takes here beside the worlds of other workers on this device; 0: it has not.

        What is measured here says too much then: a block that another one was beside throughout is not followed by
        a second such one, or the device would be theirs alone.
        """
        self._told_s = block_s

    @property
    def spare_s(self) -> float:
        """What a spare block is reckoned to take."""
        return self._told_s or self.block_s(HIGH)

    def rates(self) -> dict[str, float]:
        """Return what the warm-up has measured: see ``worker.warm_up``, and each path's rate."""
        return dict(self._rates)
