"""Many seeds, in one process or in several: each has a part of them at a time, and the parts come back in order."""

import gc
import multiprocessing
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import starmap

from tests.simulation.case import Case, Result
from tests.simulation.report import report
from tests.simulation.run import simulate
from tests.simulation.shrink import shrink

PART = 25
"""Seeds that a process runs before it says what came of them: what is lost of each when a run is stopped."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """What came of seeds that follow each other."""

    next_seed: int
    broken: list[dict[str, object]] = field(default_factory=list)
    """Of each run that broke an invariant: its seed, and the invariant."""
    totals: Counter[str] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)
    """Of each such run: all that is needed to see it again."""

    def add(self, other: "Batch") -> None:
        """Append the seeds that follow."""
        self.next_seed = other.next_seed
        self.broken += other.broken
        self.totals.update(other.totals)
        self.reports += other.reports


def run_part(first: int, last: int) -> Batch:
    """Run the seeds from ``first`` up to ``last``, without it."""
    batch = Batch(next_seed=last)
    for seed in range(first, last):
        result = simulate(Case(seed=seed))
        batch.totals.update(_counted(result))
        if result.broken:
            batch.broken.append({"seed": seed, "broken": result.broken})
            batch.reports.append(report(result, shrink(result)))
    gc.collect()
    return batch


@contextmanager
def running(first: int, last: int, *, num_processes: int) -> Iterator[Iterator[Batch]]:
    """Run the seeds in ``num_processes`` processes; give their batches in order. What is not asked for is given up."""
    parts = [(start, min(start + PART, last)) for start in range(first, last, PART)]
    if num_processes == 1:
        yield starmap(run_part, parts)
        return
    with multiprocessing.get_context("spawn").Pool(num_processes, initializer=_begin) as pool:
        yield pool.imap(_run_one, parts)


def _begin() -> None:
    """All that is imported is here to stay: no collection looks at it again."""
    gc.collect()
    gc.freeze()


def _run_one(part: tuple[int, int]) -> Batch:
    return run_part(*part)


def _counted(result: Result) -> Counter[str]:
    counted = Counter(result.counts)
    counted["runs"] += 1
    counted["faults"] += len(result.fired)
    counted["virtual seconds"] += round(result.virtual_s)
    counted.update(f"fault {name.partition(':')[0]}" for name in result.fired)
    return counted
