"""What a block takes that has its device to itself, and how much of a device's time is taken. Pure.

A worker computes one block at a time. Two workers on one device share its time: beside a block of the other one, one
takes up to twice as long. So a time by the clock says what a device has left only where nobody else computed:

    worker 1   |==== 0.15 ====|              |======= 0.26 =======|
    worker 2                        |==== 0.15 ====|  |======= ...      the first of each was alone, the others were not

Whether a block was alone is known once its neighbours have come. One that is taken for alone and was not says too much.
"""

from collections import deque
from dataclasses import dataclass

from worldmove.worker.leeway import MARGIN, unused_s
from worldmove.worker.long_run import in_the_long_run

NUM_RECENT = 32
"""Blocks of a device among which it is looked who computed beside whom."""
NUM_KEPT = 64
"""Times of blocks that were alone."""
HIGH = 0.95
BESIDE = 0.02
"""The share of a block beside which somebody may compute: so much can be the way of its message."""


@dataclass(slots=True)
class Computed:
    """One block: at which worker, from when to when, and whether nobody else computed then, as far as is known."""

    worker: str
    begin: float
    end: float
    is_alone: bool = True

    @property
    def took_s(self) -> float:
        return self.end - self.begin

    def note(self, other: "Computed") -> None:
        """Another block has come: it may have been computed beside this one."""
        both_s = min(self.end, other.end) - max(self.begin, other.begin)
        if self.worker != other.worker and both_s > BESIDE * self.took_s:
            self.is_alone = False


class Pace:
    """One device's."""

    def __init__(self) -> None:
        self._recent: deque[Computed] = deque()
        self._alone: deque[float] = deque(maxlen=NUM_KEPT)
        """What older ones took."""

    def block(self, worker: str, ended_at: float, compute_s: float) -> None:
        """A worker has computed a block, of whatever copy."""
        new = Computed(worker, ended_at - compute_s, ended_at)
        for other in self._recent:
            other.note(new)
            new.note(other)
        self._recent.append(new)
        if len(self._recent) > NUM_RECENT:
            oldest = self._recent.popleft()
            self._alone.extend([oldest.took_s] if oldest.is_alone else [])

    def block_s(self) -> float | None:
        """Return a high quantile of what blocks took that were alone; None where none was."""
        ordered = sorted(self._all_alone())
        return ordered[min(len(ordered) - 1, int(HIGH * len(ordered)))] if ordered else None

    def long_run_s(self) -> float | None:
        """Return what they took in the long run; None where none was."""
        alone = self._all_alone()
        return in_the_long_run(alone) if alone else None

    def _all_alone(self) -> tuple[float, ...]:
        return (*self._alone, *(each.took_s for each in self._recent if each.is_alone))


class Paces:
    """Of every device, by its name."""

    def __init__(self) -> None:
        self._paces: dict[str, Pace] = {}

    def block(self, device: str, worker: str, ended_at: float, compute_s: float) -> None:
        """A worker has computed a block."""
        self._paces.setdefault(device, Pace()).block(worker, ended_at, compute_s)

    def block_s(self, device: str) -> float | None:
        """See ``Pace.block_s``."""
        pace = self._paces.get(device)
        return None if pace is None else pace.block_s()

    def long_run_s(self, device: str) -> float | None:
        """See ``Pace.long_run_s``."""
        pace = self._paces.get(device)
        return None if pace is None else pace.long_run_s()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Who computes on a device, as one of its workers sees it."""

    period_s: float
    block_s: float | None
    """See ``Pace.block_s``: for one that is to be in time."""
    own: int
    """The worlds that are played at this worker."""
    others: tuple[int, ...] = ()
    """The worlds of each other worker that plays any."""
    long_run_s: float | None = None
    """See ``Pace.long_run_s``: for many that follow each other."""
    spare_s: float = 0.0
    """What this worker reckons a spare block to take where it is to fit in; 0: it has not said so."""
    ages_s: tuple[float, ...] = ()
    """How old the newest list of each world of this worker was at one moment; of none that rests."""

    @property
    def _num_elsewhere(self) -> int:
        return sum(self.others)

    def share(self, block_s: float) -> float:
        """Return the share of the device's time that a follower cannot have here, where a block takes so long.

        A follower gives way to the worlds of its own worker alone. Beside it each worker has an equal part of the
        device: where that is less than another one's worlds take, there is no time that nobody would miss.
        """
        equal = self.period_s / (1 + len(self.others))
        if any(number * block_s > equal for number in self.others):
            return 1.0
        return (self.own + self._num_elsewhere) * block_s / self.period_s

    def taken(self, block_s: float) -> float:
        """Return the share of its worker's time that no further world can have, where a block takes so long."""
        return self.share(block_s) + self.unused(block_s)

    def unused(self, block_s: float) -> float:
        """Return the share of its worker's time that the rule for spare blocks lets go by, where a block takes so long.

        See ``worker.leeway``.
        """
        if self.period_s <= 0:
            return 0.0
        takes_s = max(self.spare_s, self.beside_s, block_s)
        runs_s = max(block_s, self.beside_s)
        lost_s = unused_s(self.ages_s, period_s=self.period_s, block_s=runs_s, takes_s=MARGIN * takes_s)
        return lost_s / self.period_s

    @property
    def beside_s(self) -> float:
        """What a block takes here beside the others' worlds, in the long run; 0: not known, or there are none."""
        if self.block_s is None or not self.others or not self.period_s:
            return 0.0
        left = 1.0 - self._num_elsewhere * self.block_s / self.period_s
        return self.block_s / left if left > 0 else 0.0
