"""The file of a long run: what was run, by which versions, and what came of it. A later call goes on from it."""

import json
import os
import platform
import shutil
import subprocess
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.simulation.batch import Batch

PACKAGES = ("msgspec", "numpy", "sqlalchemy", "structlog", "torch", "xxhash")


class OtherCommitError(Exception):
    """A file holds seeds that another program has run."""


def read(path: Path | None, first: int) -> tuple[Batch, float]:
    """Return what a file holds, and the seconds that it took; nothing yet where there is none.

    Raises OtherCommitError.
    """
    if path is None or not path.exists():
        return Batch(next_seed=first), 0.0
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if kept["commit"] != _commit():
        raise OtherCommitError(f"{path} is of commit {kept['commit']}, and this is {_commit()}: move it away")
    return Batch(next_seed=kept["next_seed"], broken=kept["broken"], totals=Counter(kept["totals"])), kept["seconds"]


def write(path: Path, batch: Batch, *, first: int, num_seeds: int, num_processes: int, seconds: float) -> None:
    """Write the file anew, whole or not at all."""
    asked = f"--first {first} --seeds {num_seeds} --processes {num_processes} --out {path}"
    record = {
        "what": "deterministic simulation: seeds run, what happened in them, and which invariants were broken",
        "command": f"python -m tests.simulation {asked}",
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "cores": os.cpu_count(),
        "processes": num_processes,
        "first_seed": first,
        "next_seed": batch.next_seed,
        "num_seeds": batch.next_seed - first,
        "result": "broken" if batch.broken else "nothing broken",
        "broken": batch.broken,
        "seconds": round(seconds, 1),
        "totals": dict(sorted(batch.totals.items())),
    }
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _commit() -> str:
    """Return the commit that runs: WORLDMOVE_COMMIT where there is no history; empty where nothing says it."""
    return os.environ.get("WORLDMOVE_COMMIT") or _checked_out()


@cache
def _checked_out() -> str:
    if shutil.which("git") is None:
        return ""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
