"""Explores the shipped protocol within the large bounds, and files what was counted under bench/results.

    python -m tests.model.large                             all of them, one after another
    python -m tests.model.large S W                         some
    python -m tests.model.large L --processes 15 --out DIR  one, by several processes; its counts go to DIR

Each takes minutes and up to some gigabytes, so the suite explores small bounds only.
"""

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.record import ROOT
from tests.model.bounds import NAMED
from tests.model.explore import Explored, explore
from tests.model.parallel import explore_together
from worldmove.cli.benches.machine import commit, hardware, versions

RESULTS = ROOT / "bench" / "results"


def main() -> int:
    """Explore what the command line names. Ends with 1 if something is broken or stuck."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.model.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bounds", nargs="*", help=f"some of {', '.join(NAMED)}; none: all")
    parser.add_argument("--processes", type=int, default=1, help="how many explore together")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder that the counts go to")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return max(_run(name, options.processes, options.out) for name in options.bounds or NAMED)


def _run(name: str, num_processes: int, out: Path) -> int:
    begun, begun_at = time.monotonic(), datetime.now(UTC)
    bounds, alone = NAMED[name], num_processes == 1
    explored = explore(bounds) if alone else explore_together(bounds, num_processes=num_processes)
    result = {
        "name": f"model {name}",
        "begun_at": begun_at.isoformat(timespec="seconds"),
        "command": f"python -m tests.model.large {json.dumps(name)}"
        + ("" if alone else f" --processes {num_processes}"),
        "hardware": hardware(),
        "versions": {key: version for key, version in versions().items() if key in ("python", "worldmove", "msgspec")},
        "commit": commit(),
        "bounds": asdict(bounds),
        "processes": num_processes,
        "seconds": round(time.monotonic() - begun, 1),
        **counts(explored),
    }
    path = out / f"model-{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{name}: {json.dumps(counts(explored))}, {result['seconds']} s -> {path.name}\n")
    return int(bool(explored.num_bad or explored.num_stuck))


def counts(explored: Explored) -> dict[str, Any]:
    """Return what was found, in numbers."""
    return {
        "states": explored.num_states,
        "steps": explored.num_steps,
        "bad": explored.num_bad,
        "stuck": explored.num_stuck,
        "broken": {broken.name: number for broken, number in explored.broken.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
