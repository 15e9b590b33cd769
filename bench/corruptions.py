"""Many seeded corruptions, each of one move over loopback with the shipped drivers; none may be accepted.

The sites are those of ``tests/attacks``: every way at every place, again and again with new seeds, until so many
corruptions took place and changed something. What struck nothing is tried and not counted.
"""

import argparse
import itertools
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

from bench.record import Recorder, label
from tests.attacks.campaign import Tally, campaign

BATCH = 400
AHEAD = 2
"""Batches that wait for each process."""
WRITE_EVERY_S = 10.0


def main() -> None:
    """Try out and write."""
    options = options_of(None)
    recorder = Recorder("corruptions", options)
    tally, begun, written = Tally(), time.monotonic(), time.monotonic()
    for found in batches(options.seed, options.processes):
        tally = tally.and_(found)
        now = time.monotonic()
        if tally.struck >= options.corruptions or tally.failures or now - begun > options.limit_s:
            break
        if now - written > WRITE_EVERY_S:
            recorder.keep(summary_of(tally), samples_of(tally), Path(options.out))
            written = now
    recorder.write(summary_of(tally), samples_of(tally))
    sys.exit(bool(tally.failures))


def batches(seed: int, num_processes: int) -> Iterator[Tally]:
    """Give what came of the list of cases that a seed gives, in its order: how many share the work decides nothing."""
    with ProcessPoolExecutor(max_workers=num_processes) as pool:
        asked = deque[Future[Tally]]()
        for first in itertools.count(step=BATCH):
            asked.append(pool.submit(campaign, first, BATCH, seed))
            if len(asked) > AHEAD * num_processes:
                try:
                    yield asked.popleft().result()
                except GeneratorExit:
                    pool.shutdown(cancel_futures=True)
                    raise


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.corruptions", description=__doc__)
    options.add_argument("--out", default=f"bench/results/corruptions-{label()}.json", help="where the result goes")
    options.add_argument("--corruptions", type=int, default=100_000, help="how many must have taken place")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--limit-s", type=float, default=inf, help="seconds after which it stops with what it has")
    return options.parse_args(arguments)


def summary_of(tally: Tally) -> dict[str, Any]:
    """Return what is said of the run."""
    by_outcome: Counter[str] = Counter()
    for (_, outcome, struck), count in tally.counts.items():
        by_outcome[outcome] += count if struck else 0
    return {
        "corruptions": tally.struck,
        "accepted": by_outcome["accepted"],
        "stuck": by_outcome["stuck"],
        "outcomes": dict(sorted(by_outcome.items())),
        "tried": tally.tried,
        "struck_nothing": tally.tried - tally.struck,
        "sites": tally.num_sites,
        "failures": [str(failure) for failure in tally.failures],
    }


def samples_of(tally: Tally) -> dict[str, Any]:
    """Return the counts by kind and outcome."""
    rows = sorted((where, outcome, count) for (where, outcome, struck), count in tally.counts.items() if struck)
    reasons = sorted(tally.reasons.items())
    return {
        "by_kind_and_outcome": [{"kind": where, "outcome": outcome, "count": n} for where, outcome, n in rows],
        "reasons": [{"kind": where, "reason": reason, "count": n} for (where, reason), n in reasons],
    }


if __name__ == "__main__":
    main()
