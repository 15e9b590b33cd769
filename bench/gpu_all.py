"""Everything that wants a GPU, in one command and within one limit: tests, fingerprint, moves, the live loop.

    python -m tests.gpu.wheelhouse run wheelhouse python -m bench.gpu_all --out FOLDER

Each step has a limit of its own and a file in the folder. One that fails, or has no time left, says so in ``all.json``
and stops no other. With ``--preset matrix-tiny`` all but what needs the device is tried without one.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.record import ROOT
from worldmove.cli.benches.machine import head
from worldmove.cli.json_text import json_text

USUAL = ("tests", "wmf1", "rows", "loop", "latents", "complete", "live")
CHECK_FAILED = 3
TAIL = 2000
"""Characters of a step's output that its entry has."""
WORLDMOVE = (sys.executable, "-c", "from worldmove.cli.main import main; main()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command. ``prints_result``: its last line of standard output is its result, as JSON, if it ended well.

    Also with 3 it has ended well: a check of its own failed, which the result tells. ``needs_s``: with less time left
    it is not begun, since it would be cut off before it has a result.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float
    prints_result: bool = False
    needs_s: float = 0.0


def main() -> None:
    """Take the steps; end with 1 if one of them failed."""
    options = options_of(None)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [step for step in steps(options, folder) if step.name in options.only.split(",")]
    found = take(chosen, folder, options.budget, time.monotonic)
    write(folder, found, options.label)
    sys.exit(any(entry["status"] != 0 for entry in found["steps"].values()))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.gpu_all", description=__doc__)
    options.add_argument("--out", required=True, help="the folder for everything")
    options.add_argument("--label", default="h200", help="the machine's name in file names")
    options.add_argument("--preset", default="matrix-game-2")
    options.add_argument("--only", default=",".join(USUAL), help="these steps alone, with commas; there is engine, too")
    options.add_argument("--moves", type=int, default=20)
    options.add_argument("--repeats", type=int, default=20)
    options.add_argument("--file-repeats", type=int, default=20)
    options.add_argument("--live-moves", type=int, default=200)
    options.add_argument("--live-control", type=float, default=0.2, help="as `bench live --control`")
    options.add_argument("--residents", type=int, default=1)
    options.add_argument("--budget", type=float, default=570.0, help="seconds for all of it")
    return options.parse_args(arguments)


def steps(options: argparse.Namespace, folder: Path) -> list[Step]:
    """Return the steps in order: what is quick and decides first."""
    move = (*WORLDMOVE, "bench", "move", "--json", "-n", str(options.moves), "--repeats", str(options.repeats))
    live: tuple[str, ...] = (*WORLDMOVE, "bench", "live", "--json", "-n", str(options.live_moves))
    live += ("--control", str(options.live_control), "--residents", str(options.residents), "--segment", "25")
    live += ("--every", "0", "--check-blocks", "0", "--strategy", "boundary copy", "--replay-s", "130")
    return [
        Step(name="tests", command=(sys.executable, "-m", "pytest", "-q", "-rs", "tests/gpu"), limit_s=300),
        Step(
            name="wmf1",
            command=(sys.executable, "-m", "bench.gpu_fingerprint", "--out", f"{folder}/wmf1.json", "--budget", "30"),
            limit_s=90,
        ),
        Step(
            name="rows",
            command=(
                *(
                    sys.executable,
                    "-m",
                    "bench.gpu_rows",
                    "--preset",
                    options.preset,
                    "--repeats",
                    str(options.repeats),
                ),
                *("--out", f"{folder}/rows-{options.label}.json"),
            ),
            limit_s=90,
        ),
        Step(
            name="engine",
            command=(
                *(sys.executable, "-m", "bench.gpu_engine", "--preset", options.preset, "--blocks", "20"),
                *("--finite-blocks", "60", "--twin-blocks", "4", "--out", f"{folder}/engine.json"),
            ),
            limit_s=200,
        ),
        Step(
            name="loop",
            command=(
                *(sys.executable, "-m", "bench.movable", "--engine", f"reference:{options.preset}", "--goal", "1.01"),
                *("--pairs", "60", "--runs", "8", "--warm", "6", "--out", f"{folder}/movable-{options.label}.json"),
            ),
            limit_s=120,
        ),
        Step(
            name="latents",
            command=(*move, "--file-repeats", str(options.file_repeats), "--preset", f"{options.preset}-latents"),
            limit_s=300,
            prints_result=True,
        ),
        Step(
            name="complete",
            command=(*move, "--file-repeats", "3", "--preset", options.preset),
            limit_s=240,
            prints_result=True,
        ),
        Step(
            name="live",
            command=(*live, "--preset", options.preset),
            limit_s=540,
            prints_result=True,
        ),
    ]


def take(
    chosen: Sequence[Step],
    folder: Path,
    budget_s: float,
    clock: Callable[[], float],
    note: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:
    """Run steps one after another; return what came of each, and their results. ``note`` hears of all after each."""
    begun, found, results, begin = clock(), dict[str, Any](), dict[str, Any](), head()

    def so_far() -> dict[str, Any]:
        return {**begin, "seconds": round(clock() - begun, 1), "steps": found, "results": results}

    for step in chosen:
        left_s = budget_s - (clock() - begun)
        if left_s <= step.needs_s:
            found[step.name] = {"status": None, "why": "no time was left"}
            note(so_far())
            continue
        found[step.name], out = _run(step, min(step.limit_s, left_s), clock)
        (folder / f"{step.name}.log").write_text(out, encoding="utf-8")
        if step.prints_result and found[step.name]["status"] in (0, CHECK_FAILED):
            results[step.name] = json.loads(out.splitlines()[-1])
            (folder / f"{step.name}.log").unlink()
        print(json_text({step.name: found[step.name]}), flush=True)
        note(so_far())
    return so_far()


def write(folder: Path, found: Mapping[str, Any], label: str) -> None:
    """Write one file for the moves of both scopes, one for the live loop, and what became of each step."""
    begin = {key: value for key, value in found.items() if key not in ("steps", "results")}
    results, day = found["results"], found["begun_at"][:10]
    moves = {name: results[name] for name in ("latents", "complete") if name in results}
    if moves:
        write_json(folder / f"move-{label}.json", {"name": f"move-{label}", "day": day, **begin, **moves})
    if "live" in results:
        write_json(folder / f"live-{label}.json", {"name": f"live-{label}", "day": day, **results["live"]})
    write_json(folder / "all.json", {"name": "gpu_all", **begin, "steps": found["steps"]})


def _run(step: Step, limit_s: float, clock: Callable[[], float]) -> tuple[dict[str, Any], str]:
    """Run one step; return its entry and its standard output. At the limit it is killed, and its children too."""
    begun = clock()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((f"{ROOT}/src", str(ROOT), *_python_path()))}
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        why = "" if process.returncode == 0 else "it failed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        why = f"it took longer than {limit_s:.0f} s"
    entry = {
        "command": shlex.join(step.command),
        "status": process.returncode,
        "seconds": round(clock() - begun, 1),
        "why": why,
        "errors": err[-TAIL:] if why else "",
    }
    return entry, out


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write one file."""
    path.write_text(json_text(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
