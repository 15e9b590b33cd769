"""``python -m tests.simulation``: run seeds, and say what broke. See ``make simulate``."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.simulation.batch import Batch, running
from tests.simulation.case import Case
from tests.simulation.record import OtherCommitError, read, write
from tests.simulation.run import simulate

WRITE_EVERY_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one case with its trace, or many seeds. Returns 1 where an invariant was broken, 2 where nothing was run."""
    asked = _asked(arguments)
    return _many(asked) if asked.seed is None else _one(_case(asked))


def _one(case: Case) -> int:
    result = simulate(case)
    sys.stdout.write("\n".join(result.lines) + "\n")
    sys.stdout.write(f"trace {result.hash}; {result.broken or 'nothing is broken'}\n")
    return 1 if result.broken else 0


def _many(asked: Any) -> int:
    try:
        batch, before_s = read(asked.out, asked.first)
    except OtherCommitError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    begun, first = time.monotonic(), batch.next_seed
    _go_on(asked, batch, begun, before_s)
    spent = time.monotonic() - begun
    if asked.out:
        _write(asked, batch, before_s + spent)
    num_seeds, missing = batch.next_seed - asked.first, asked.first + asked.seeds - batch.next_seed
    again = f"; {missing:,} are left: the same command goes on" if missing else ""
    rate = (batch.next_seed - first) / spent
    sys.stdout.write(f"{num_seeds:,} seeds, {len(batch.broken)} broken; {rate:.1f} runs a second{again}\n")
    sys.stdout.write("".join(f"  {name}: {number:,}\n" for name, number in sorted(batch.totals.items())))
    return 1 if batch.broken else 0


def _go_on(asked: Any, batch: Batch, begun: float, before_s: float) -> None:
    """Add the seeds that are left, until the time is over."""
    written = begun
    with running(batch.next_seed, asked.first + asked.seeds, num_processes=asked.processes) as parts:
        for part in parts:
            batch.add(part)
            sys.stdout.write("".join(f"{text}\n" for text in part.reports))
            now = time.monotonic()
            if asked.out and now - written > WRITE_EVERY_S:
                _write(asked, batch, before_s + now - begun)
                written = now
            if asked.limit_s is not None and now - begun > asked.limit_s:
                break


def _write(asked: Any, batch: Batch, seconds: float) -> None:
    write(asked.out, batch, first=asked.first, num_seeds=asked.seeds, num_processes=asked.processes, seconds=seconds)


def _asked(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--processes", type=int, default=1, help="how many processes share them")
    parser.add_argument("--limit-s", type=float, help="stop after so long; the same command goes on, with --out")
    parser.add_argument("--out", type=Path, help="a file for the result; what it holds already is gone on from")
    parser.add_argument("--seed", type=int, help="run this one, and print its trace")
    parser.add_argument("--mask", default="", help="faults that do not strike, separated by commas")
    parser.add_argument("--horizon", type=float, help="seconds of faults, in virtual time")
    parser.add_argument("--fifo", action="store_true", help="every task in its turn, none drawn")
    return parser.parse_args(arguments)


def _case(asked: Any) -> Case:
    mask = frozenset(name for name in asked.mask.split(",") if name)
    return Case(seed=asked.seed, mask=mask, horizon_s=asked.horizon, fifo=asked.fifo)


if __name__ == "__main__":
    sys.exit(main())
