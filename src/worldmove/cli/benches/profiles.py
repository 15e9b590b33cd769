"""What workers' profiles say of the pauses: what each piece of blocking work took, and where the threads stood.

A pause is, here, from the asking for a freeze's work to the moment at which the destination may play.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from worldmove.serve.server_config import ServerConfig

FREEZE, ALLOWED = "freeze_in", ("destination", "live")
MOST_LINES = 60

Pause = tuple[float, float, str]
"""When it began and ended, and the worker at which it began."""


@contextmanager
def looking(config: ServerConfig, *, wanted: bool) -> Iterator[tuple[ServerConfig, Callable[[], dict[str, Any]]]]:
    """Have the workers of a server looked into, if wanted.

    Gives the configuration to start it with, and what says what was seen, once it has ended.
    """
    if not wanted:
        yield config, dict
        return
    with TemporaryDirectory(prefix="worldmove-profile-") as folder:
        worker = msgspec.structs.replace(config.worker, profile=folder)
        yield replace(config, worker=worker), lambda: {"profile": of_pauses(Path(folder))}


def of_pauses(folder: Path) -> dict[str, Any]:
    """Read the profiles in a folder, and say what they show of the pauses."""
    workers = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    pauses = _pauses(workers)
    if not pauses:
        return {"pauses": 0, "pauses_ms": [], "jobs_ms": {}, "stood_ms": {}}
    return {
        "pauses": len(pauses),
        "pauses_ms": [round(1000 * (end - begin), 3) for begin, end, _ in pauses],
        "jobs_ms": _jobs(workers, pauses),
        "stood_ms": _stood(workers, pauses),
    }


def _pauses(workers: Mapping[str, Any]) -> list[Pause]:
    asked = sorted(
        (job["asked"], name) for name, seen in workers.items() for job in seen["jobs"] if job["what"] == FREEZE
    )
    ends = sorted(
        mark["at"] for seen in workers.values() for mark in seen["marks"] if (mark["side"], mark["phase"]) == ALLOWED
    )
    found: dict[float, Pause] = {}
    for end in ends:
        before = [each for each in asked if each[0] < end]
        if before:
            found.setdefault(before[-1][0], (before[-1][0], end, before[-1][1]))
    return list(found.values())


def _end_of(worker: str, pause: Pause) -> str:
    return "source" if worker == pause[2] else "destination"


def _jobs(workers: Mapping[str, Any], pauses: Sequence[Pause]) -> dict[str, Any]:
    """Return what the work in pauses took, by end, thread and function: medians of its runs, the longest first.

    ``queued``: from the asking until it began; ``told``: from its end until who had asked went on. ``cpu``: of its
    thread; ``loop_cpu``: of the event loop's thread meanwhile, which wants the same lock.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for worker, seen in workers.items():
        for job in seen["jobs"]:
            pause = next((each for each in pauses if job["asked"] < each[1] and each[0] < job["resumed"]), None)
            if pause is not None and "ended" in job:
                kinds.setdefault(f"{_end_of(worker, pause)} {job['thread']}: {job['what']}", []).append(job)
    ordered = sorted(kinds.items(), key=lambda kind: -median(job["resumed"] - job["asked"] for job in kind[1]))
    return {
        name: {
            "n": len(jobs),
            "queued": _median(job["began"] - job["asked"] for job in jobs),
            "wall": _median(job["ended"] - job["began"] for job in jobs),
            "cpu": _median(job["cpu_s"] for job in jobs),
            "loop_cpu": _median(job["loop_cpu_s"] for job in jobs),
            "told": _median(job["resumed"] - job["ended"] for job in jobs),
        }
        for name, jobs in ordered
    }


def _stood(workers: Mapping[str, Any], pauses: Sequence[Pause]) -> dict[str, float]:
    """Return in which lines threads stood in pauses: ms a pause, by end and thread, the longest first.

    A sample counts for the time until the next one of its process.
    """
    found: dict[str, float] = {}
    for worker, seen in workers.items():
        for (at, stands), (until, _) in zip(seen["samples"], seen["samples"][1:], strict=False):
            pause = next((each for each in pauses if each[0] <= at <= each[1]), None)
            if pause is None:
                continue
            for thread, own, top in stands:
                where = own if own == top else f"{own} > {top}"
                name = f"{_end_of(worker, pause)} {thread}: {where}"
                found[name] = found.get(name, 0.0) + min(until, pause[1]) - at
    longest = sorted(found.items(), key=lambda each: -each[1])[:MOST_LINES]
    return {name: round(1000 * spent / len(pauses), 3) for name, spent in longest}


def _median(seconds: Iterable[float]) -> float:
    return round(1000 * median(seconds), 3)
