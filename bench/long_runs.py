"""The long runs one after another, each by many processes, for a machine that is lent for minutes.

    python -m bench.long_runs --out FOLDER --processes 12 --limit-s 530

First moves of real processes with faults, each world's server with ports and folders of its own, and corruptions beside
them; then seeds of the simulation, until the time is over. ``--only`` names one or some; ``model P`` is one more. Each
writes its own file as it goes, and long_runs.json says what was run, by which code, and how it ended. Simulated seeds
are gone on from where FOLDER has some of the same commit (WORLDMOVE_COMMIT names it where there is no history).
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.chaos import summary_of
from bench.record import ROOT, Recorder, label

RUNS = ("chaos", "corruptions", "simulation")
MODEL = "model P"
MARGIN_S = 25.0
"""A run that was told to stop ends what it is at."""
PER_WORLD_S = 40.0
"""The longest that a world of 25 moves with faults takes."""
WORLDS_AT_ONCE = 8
"""More worlds that share the cores with everything else would find faults of the clock, and not of the program."""


def main() -> int:
    """Run what the command line names. Ends with 1 where one found something or ended badly."""
    options = options_of(None)
    recorder, out, begun = Recorder("long_runs", options), Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for group in (("chaos", "corruptions"), ("simulation",), (MODEL,)):
        asked = [name for name in group if name in options.only]
        left_s = options.limit_s - (time.monotonic() - begun)
        rows += together([command for name in asked for command in commands(name, options, asked, left_s)], left_s)
        recorder.keep(account(rows), {"runs": rows}, out / "long_runs.json")
    if "chaos" in options.only:
        recorder.keep(*of_all_worlds(out), out / f"chaos-{label()}.json")
    recorder.write(account(rows), {"runs": rows}, out / "long_runs.json")
    return int(any(row["status"] for row in rows))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    about = (__doc__ or "").partition("\n")[0]
    options = argparse.ArgumentParser(prog="python -m bench.long_runs", description=about)
    options.add_argument("--out", required=True, help="the folder of the results")
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--limit-s", type=float, default=530.0, help="for all of it")
    options.add_argument("--only", nargs="*", default=list(RUNS), choices=[*RUNS, MODEL])
    options.add_argument("--moves", type=int, default=2000)
    options.add_argument("--corruptions", type=int, default=100_000)
    options.add_argument("--seeds", type=int, default=100_000)
    return options.parse_args(arguments)


def commands(
    name: str, options: argparse.Namespace, beside: Sequence[str], left_s: float
) -> list[tuple[str, list[str]]]:
    """Return what is started for a run: its name, and each process's words."""
    out, until_s = Path(options.out), max(1.0, left_s - MARGIN_S)
    worlds = min(WORLDS_AT_ONCE, max(1, options.processes // 2))
    match name:
        case "chaos":
            shares = [options.moves // worlds + (number < options.moves % worlds) for number in range(worlds)]
            for_s = max(1.0, until_s - PER_WORLD_S)
            words = ["bench.chaos", "--share", "0.2", "--for-s", f"{for_s:.0f}"]
            return [
                (
                    name,
                    [*words, "--moves", f"{share}", "--seed", f"{seed}", "--out", f"{out / f'chaos-seed-{seed}.json'}"],
                )
                for seed, share in enumerate(shares, start=1)
            ]
        case "corruptions":
            processes = max(1, options.processes - worlds // 2 if "chaos" in beside else options.processes)
            words = ["bench.corruptions", "--corruptions", f"{options.corruptions}", "--limit-s", f"{until_s:.0f}"]
        case "simulation":
            processes = options.processes
            words = ["tests.simulation", "--seeds", f"{options.seeds}", "--limit-s", f"{until_s:.0f}"]
        case _:
            return [(name, ["tests.model.large", "P", "--processes", f"{options.processes}", "--out", f"{out}"])]
    return [(name, [*words, "--processes", f"{processes}", "--out", f"{out / f'{name}-{label()}.json'}"])]


def together(asked: Sequence[tuple[str, list[str]]], left_s: float) -> list[dict[str, Any]]:
    """Run some at the same time; return how each ended. What goes on for too long is ended."""
    begun, environment = time.monotonic(), os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")))
    running = [
        (
            name,
            words,
            subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env=environment, start_new_session=True),
        )
        for name, words in asked
    ]
    rows = []
    for name, words, process in running:
        try:
            process.wait(max(1.0, left_s - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its own processes too
            process.wait()
        seconds = round(time.monotonic() - begun, 1)
        rows.append({"run": name, "command": " ".join(words), "status": process.returncode, "ended_after_s": seconds})
    return rows


def of_all_worlds(out: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the summary and the rows of every process that moved worlds."""
    rows = []
    for path in sorted(out.glob("chaos-seed-*.json")):
        kept = msgspec.json.decode(path.read_bytes())
        rows += [row | {"session": f"{path.stem}: {row['session']}"} for row in kept["samples"]["moves"]]
    return summary_of(rows) | {"code": code()}, {"moves": rows}


def account(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what is said of all of it."""
    return {"code": code(), "ended_well": sum(row["status"] == 0 for row in rows), "started": len(rows)}


def code() -> str:
    """Return a digest of every Python file that was run, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("src", "tests", "bench") for path in (ROOT / part).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
