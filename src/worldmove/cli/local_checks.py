"""What ``doctor`` tries on this machine itself: the engine, its canary twice, memory that processes share."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worldmove.cli.device_paths import KEPT_S, PathFound, devices, notes_of, probe_all
from worldmove.errors import WorldMoveError
from worldmove.serve.state_folder import path_notes_file
from worldmove.units import MIB, bytes_text
from worldmove.worker.engines import build_engine
from worldmove.worker.path_notes import write_notes
from worldmove.worker.warm_up import WarmUp, warm_up

PROBE_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """This machine's environment, and each check: name, ok, detail."""

    environment: dict[str, str]
    checks: list[dict[str, Any]]


def examine(engine: str, num_threads: int) -> Findings:
    """Try everything; what fails is a finding, not an error. Raises UserError for an engine that there is not."""
    checks = [_tried("memory that processes share", _shared_memory)]
    first: list[WarmUp] = []

    def canary() -> str:
        built = build_engine(engine, num_threads)
        first.extend(warm_up(built, time.perf_counter) for _ in range(2))
        block_s, period_s = first[1].rates["block_s"], built.spec.period_s
        return f"{engine}: a block of {1000 * period_s:.0f} ms takes {1000 * block_s:.0f} ms here"

    def repeats() -> str:
        one, other = ({name: value for name, value in found.environment.items() if "canary" in name} for found in first)
        if one != other:
            raise WorldMoveError("the same block came out differently the second time")
        return f"{len(one)} digests equal"

    checks.append(_tried("weights and engine", canary))
    if len(first) == 2:
        checks.append(_tried("the canary repeats", repeats))
    paths = probe_all(devices())
    checks += [_path_check(found) for found in paths]
    if paths:
        checks.append(_tried("what was found of paths is kept", lambda: _kept(paths, path_notes_file(os.environ))))
    return Findings(environment=first[0].environment if first else {}, checks=checks)


def _kept(paths: Sequence[PathFound], file: Path) -> str:
    """Write down what workers go by when they are started next."""
    now = time.time()
    notes = notes_of(paths, now)
    write_notes(file, notes, now)
    return f"{len(notes)} paths in {file}, for {KEPT_S / 3600:.0f} hours"


def _path_check(found: PathFound) -> dict[str, Any]:
    """Say what a path between two devices carried, size by size."""
    told = ", ".join(f"{bytes_text(size)} at {bytes_text(int(rate))}/s" for size, rate in found.rates.items())
    name = f"{found.transport} from {found.source} to {found.destination}, process to process"
    return {"name": name, "ok": not found.why, "detail": found.why or told}


def _tried(name: str, work: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "detail": work()}
    except (WorldMoveError, OSError) as error:
        return {"name": name, "ok": False, "detail": str(error)}


def _shared_memory() -> str:
    """Make a memory file, fill its pages, and let it go."""
    descriptor = os.memfd_create("worldmove-doctor", os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(descriptor, 0, PROBE_BYTES)
    finally:
        os.close(descriptor)
    pages, page_bytes = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{PROBE_BYTES // MIB} MiB tried, {pages * page_bytes // MIB:,} MiB free"
