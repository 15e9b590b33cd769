"""``python -m tests.simulation``: run seeds, and say what broke. See ``make simulate``."""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulation.report import report
from tests.simulation.run import Case, Result, simulate
from tests.simulation.shrink import shrink

SAVE_EVERY = 500


def main() -> int:
    """Run one case with its trace, or many seeds. Returns 1 where an invariant was broken."""
    asked = _asked()
    if asked.seed is not None:
        return _one(_case(asked))
    record = _read(asked.out) if asked.out else {}
    first = record.get("next_seed", asked.first)
    broken = list(record.get("broken", []))
    totals = Counter(record.get("totals", {}))
    seconds, last = record.get("seconds", 0.0), asked.first + asked.seeds
    deadline = time.monotonic() + asked.minutes * 60 if asked.minutes else None
    begun = time.monotonic()
    for seed in range(first, last):
        result = simulate(Case(seed=seed))
        totals.update(_counted(result))
        if result.broken:
            broken.append({"seed": seed, "broken": result.broken})
            sys.stdout.write(report(result, shrink(result)) + "\n")
        enough = seed + 1 == last or (deadline is not None and time.monotonic() > deadline)
        if asked.out and (enough or seed % SAVE_EVERY == SAVE_EVERY - 1):
            spent = seconds + time.monotonic() - begun
            _write(asked.out, asked, seed + 1, broken, totals, spent)
        if enough:
            last = seed + 1
            break
        if seed % SAVE_EVERY == SAVE_EVERY - 1:
            gc.collect()
    spent = time.monotonic() - begun
    rate = (last - first) / spent if spent else 0.0
    sys.stdout.write(f"{last - asked.first:,} seeds, {len(broken)} broken; {rate:.1f} runs a second\n")
    sys.stdout.write("".join(f"  {name}: {number:,}\n" for name, number in sorted(totals.items())))
    return 1 if broken else 0


def _one(case: Case) -> int:
    result = simulate(case)
    sys.stdout.write("\n".join(result.lines) + "\n")
    sys.stdout.write(f"trace {result.hash}; {result.broken or 'nothing is broken'}\n")
    return 1 if result.broken else 0


def _asked() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--minutes", type=float, help="stop after so long; the next call goes on from there")
    parser.add_argument("--out", type=Path, help="a file for the result; what it holds already is gone on from")
    parser.add_argument("--seed", type=int, help="run this one, and print its trace")
    parser.add_argument("--mask", default="", help="faults that do not strike, separated by commas")
    parser.add_argument("--horizon", type=float, help="seconds of faults, in virtual time")
    parser.add_argument("--fifo", action="store_true", help="every task in its turn, none drawn")
    return parser.parse_args()


def _case(asked: Any) -> Case:
    mask = frozenset(name for name in asked.mask.split(",") if name)
    return Case(seed=asked.seed, mask=mask, horizon_s=asked.horizon, fifo=asked.fifo)


def _counted(result: Result) -> Counter[str]:
    counted = Counter(result.counts)
    counted["runs"] += 1
    counted["faults"] += len(result.fired)
    counted["virtual seconds"] += round(result.virtual_s)
    counted.update(f"fault {name.partition(':')[0]}" for name in result.fired)
    return counted


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _write(path: Path, asked: Any, next_seed: int, broken: list[Any], totals: Counter[str], spent: float) -> None:
    record = {
        "what": "deterministic simulation: seeds run, what happened in them, and which invariants were broken",
        "command": f"python -m tests.simulation --first {asked.first} --seeds {asked.seeds} --out {path}",
        "commit": os.environ.get("WORLDMOVE_COMMIT") or _commit(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "first_seed": asked.first,
        "next_seed": next_seed,
        "num_seeds": next_seed - asked.first,
        "result": "broken" if broken else "nothing broken",
        "broken": broken,
        "seconds": round(spent, 1),
        "totals": dict(sorted(totals.items())),
    }
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
