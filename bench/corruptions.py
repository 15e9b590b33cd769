"""Many seeded corruptions, each of one move over loopback with the shipped drivers; none may be accepted.

The sites are those of ``tests/attacks``: every way at every place, again and again with new seeds, until so many
corruptions took place and changed something. What struck nothing is tried and not counted.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from bench.record import Recorder, label
from tests.attacks.campaign import Tally, campaign

BATCH = 2500


def main() -> None:
    """Try out and write."""
    options = options_of(None)
    recorder = Recorder("corruptions", options)
    tally = Tally()
    first = 0
    with ProcessPoolExecutor(max_workers=options.processes) as pool:
        while tally.struck < options.corruptions and not tally.failures:
            begins = [first + n * BATCH for n in range(options.processes)]
            first += len(begins) * BATCH
            for found in pool.map(campaign, begins, [BATCH] * len(begins), [options.seed] * len(begins)):
                tally = tally.and_(found)
    recorder.write(summary_of(tally), samples_of(tally))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.corruptions", description=__doc__)
    options.add_argument("--out", default=f"bench/results/corruptions-{label()}.json", help="where the result goes")
    options.add_argument("--corruptions", type=int, default=100_000, help="how many must have taken place")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--processes", type=int, default=2)
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
