"""What every measurement says of itself: machine, versions, commit, options, who else used the machine, raw samples."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from worldmove.cli.benches.machine import commit, hardware, versions
from worldmove.cli.json_text import json_text

ROOT = Path(__file__).parents[1]
JIFFY_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Processor seconds used so far. ``own``: by this process and those of its children that have ended."""

    wall_s: float
    busy_s: float
    stolen_s: float
    own_s: float


class Recorder:
    """Begun before a measurement; ``write`` after it, when every child has ended."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self._name = name
        self._options = options
        self._begun_at = datetime.now(UTC)
        self._load = os.getloadavg()
        self._before = usage()

    def keep(self, summary: Mapping[str, Any], samples: Mapping[str, Any], out: Path) -> None:
        """Write what there is so far, whole or not at all."""
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = out.with_suffix(".part")
        beside.write_text(dumped(self._result(summary, samples)), encoding="utf-8")
        beside.replace(out)

    def write(self, summary: Mapping[str, Any], samples: Mapping[str, Any], out: Path | None = None) -> None:
        """Write the result to ``--out``, or where it is said, and its summary to standard output."""
        out = out or Path(self._options.out)
        self.keep(summary, samples, out)
        print(json_text(summary, indent=2))
        print(f"-> {out}", file=sys.stderr)

    def _result(self, summary: Mapping[str, Any], samples: Mapping[str, Any]) -> dict[str, Any]:
        options = {key: value for key, value in vars(self._options).items() if key != "out"}
        return {
            "name": self._name,
            "begun_at": self._begun_at.isoformat(timespec="seconds"),
            "command": f"python -m bench.{self._name} " + " ".join(sys.argv[1:]),
            "hardware": hardware(),
            "versions": versions(),
            "commit": commit(),
            "options": options,
            "machine": {"load_before": self._load, "load_after": os.getloadavg(), **shares(self._before, usage())},
            "summary": summary,
            "samples": samples,
        }


def dumped(result: Mapping[str, Any]) -> str:
    """Return a result as JSON: readable at the top, one line for each series and row of samples."""
    head = {key: value for key, value in result.items() if key != "samples"}
    series = (f"    {json_text(key)}: {_rows(value)}" for key, value in result["samples"].items())
    return json_text(head, indent=2).removesuffix("\n}") + ',\n  "samples": {\n' + ",\n".join(series) + "\n  }\n}\n"


def _rows(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return "[\n" + ",\n".join(f"      {json_text(row)}" for row in value) + "\n    ]"
    return json_text(value)


def usage() -> Usage:
    """Read what the machine and this process have used."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    return Usage(
        wall_s=own.elapsed,
        busy_s=(user + nice + system + irq + softirq) * JIFFY_S,
        stolen_s=steal * JIFFY_S,
        own_s=own.user + own.system + own.children_user + own.children_system,
    )


def shares(before: Usage, after: Usage) -> dict[str, float]:
    """Return cores used by the measurement, by others at the same time, and taken by the hypervisor."""
    wall_s = max(after.wall_s - before.wall_s, JIFFY_S)
    own, busy = after.own_s - before.own_s, after.busy_s - before.busy_s
    return {
        "seconds": round(wall_s, 1),
        "own_cores": round(own / wall_s, 3),
        "other_cores": round(max(0.0, busy - own) / wall_s, 3),
        "stolen_cores": round((after.stolen_s - before.stolen_s) / wall_s, 3),
    }


def parser(name: str, about: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every measurement has."""
    made = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=about)
    made.add_argument("--out", default=f"bench/results/{name}-{label()}.json", help="where the result goes")
    made.add_argument("--engine", default="reference:island", help="reference:PRESET or python:MODULE:FACTORY")
    made.add_argument("--threads", type=int, default=1, help="threads of one block's arithmetic")
    return made


def label() -> str:
    """Return this machine's name in file names: how many cores."""
    return f"{os.cpu_count()}-cores"


def quiet() -> None:
    """Have the server log warnings only: its log goes to this process's standard output."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))


def require_worker_path() -> None:
    """Let workers import this package too: an engine of its own may be asked for."""
    paths: Sequence[str] = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
