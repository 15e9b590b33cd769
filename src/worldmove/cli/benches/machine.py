"""What every measurement says of where it was taken: hardware, how its GPUs are joined, versions, the code's commit."""

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import worldmove

PACKAGES = ("torch", "numpy", "msgspec", "xxhash", "sqlalchemy", "uvicorn", "websockets")
TOOL_S = 20.0
"""How long a tool that describes the machine may take."""


def hardware() -> dict[str, Any]:
    """Name the machine. ``accelerator``: the first one's name, or None."""
    found = accelerators()
    return {
        "processor": _after("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "accelerator": found[0]["name"] if found else None,
        "accelerators": found,
    }


def accelerators() -> list[dict[str, Any]]:
    """Name this process's GPUs."""
    if not torch.cuda.is_available():
        return []
    every = (torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count()))
    return [{"name": each.name, "bytes": each.total_memory, "processors": each.multi_processor_count} for each in every]


def topology() -> dict[str, Any] | None:
    """Say how this machine's GPUs are joined: as its tool draws it, and which of them reach which; None without any.

    What a path really carries is for ``doctor`` to measure.
    """
    if not torch.cuda.is_available():
        return None
    names = range(torch.cuda.device_count())
    reach = [[here == there or torch.cuda.can_device_access_peer(here, there) for there in names] for here in names]
    return {"nvidia_smi": _output("nvidia-smi", "topo", "-m"), "can_access_peer": reach}


def versions() -> dict[str, str]:
    """Name what computes."""
    known = {"python": platform.python_version(), "worldmove": worldmove.__version__}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            known[package] = "absent"
    known["torch"] = torch.__version__
    if torch.version.cuda is not None:
        known["cuda"] = torch.version.cuda
        known["driver"] = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[
            0
        ]
    return known


def commit() -> dict[str, Any]:
    """Name the code: the commit, and what was changed since. Results of other runs are no change of the code.

    A copy without its history is named by WORLDMOVE_COMMIT; whether it was changed is then not known.
    """
    named = os.environ.get("WORLDMOVE_COMMIT", "")
    if named:
        return {"sha": named, "clean": None, "changed": []}
    changed = [line for line in _git("status", "--porcelain").splitlines() if "bench/results" not in line]
    return {"sha": _git("rev-parse", "HEAD"), "clean": not changed, "changed": changed}


def head() -> dict[str, Any]:
    """Return all of it, with the day and the command, as the beginning of a result."""
    begun_at, command = datetime.now(UTC).isoformat(timespec="seconds"), shlex.join(["worldmove", *sys.argv[1:]])
    said = {"begun_at": begun_at, "command": command}
    return {**said, "hardware": hardware(), "topology": topology(), "versions": versions(), "commit": commit()}


def _git(*arguments: str) -> str:
    return _output("git", "-C", str(Path(__file__).parent), *arguments)


def _output(*command: str) -> str:
    """Return what a tool says; nothing where there is no such tool, or it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOOL_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _after(path: str, name: str) -> str:
    lines = Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
