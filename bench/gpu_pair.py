"""Everything that wants two GPUs of one host, in one command and within one limit; the table of goals comes last.

    python -m tests.gpu.wheelhouse run wheelhouse python -m bench.gpu_pair --out FOLDER

Each step has a limit of its own. One that fails, or has no time left, says so in ``pair-LABEL.json`` and stops no
other; ``--only`` takes the rest in a second command, and ``--before FILE`` puts what an earlier one brought in the same
table. With ``--preset matrix-tiny --gpus 0,1`` all but what needs the devices is tried without any.

    latents    a verified move between two processes, beside every other way to bring as many bytes across
    play       complete sessions under play, moved in both directions at once; their records computed anew
    links      moves over 100, 25, 10 and 1 Gb/s, as admission chooses
    crowd      replays to and from a worker where two others play, whose lists lie evenly in a period
    alike      canary and environment of two workers; a forced difference
    tests      those of tests/gpu that want two
    doctor     every path between two GPUs, both ways
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.gpu_all import WORLDMOVE, Step, take
from bench.pair_goals import RESIDENTS, rows, text
from worldmove.cli.json_text import json_text

USUAL = ("latents", "play", "links", "crowd", "alike", "tests", "doctor")
SMALL = "python:tests.worker.device_engine:build_cuda"
"""An engine that is quick to start, for the worker that is set otherwise."""
LINKS = "any@100gbit*4,any@25gbit*4,any@10gbit*4,any@1gbit*4"
CROWD = "replay@100gbit*6,replay@50gbit*4"
"""What is left beside two worlds makes up for little: over slower paths no replay to them is admitted
(docs/bandwidth.md)."""
IN_FILES = ("links", "crowd")
"""Steps that write a file of their own."""


def main() -> None:
    """Take the steps, write one file, and print the table; end with 1 if a step failed."""
    options = options_of(None)
    folder = Path(options.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [step for step in steps(options, folder) if step.name in options.only.split(",")]
    before = json.loads(Path(options.before).read_text(encoding="utf-8")) if options.before else {}

    def note(found: Mapping[str, Any]) -> None:
        """Write all that there is by now: whoever ends this command early has that much."""
        written = joined(before, with_files(found, folder), options.label)
        (folder / f"pair-{options.label}.json").write_text(json_text(written, indent=1) + "\n", encoding="utf-8")
        print(text(rows(written["results"])), flush=True)

    found = take(chosen, folder, options.budget, time.monotonic, note)
    sys.exit(any(entry["status"] != 0 for entry in found["steps"].values()))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.gpu_pair", description=__doc__)
    options.add_argument("--out", required=True, help="the folder for everything")
    options.add_argument("--label", default="h200x2", help="the machine's name in file names")
    options.add_argument("--preset", default="matrix-game-2")
    options.add_argument("--gpus", default="0,1", help="as `worldmove serve --gpus`")
    options.add_argument("--only", default=",".join(USUAL), help="these steps alone, with commas")
    options.add_argument("--before", default="", help="what an earlier command wrote, for the same table")
    options.add_argument("--moves", type=int, default=6, help="latents: moves under play")
    options.add_argument("--scattered-moves", type=int, default=0, help="the same of a scattered session")
    options.add_argument("--repeats", type=int, default=20, help="latents: moves without a server")
    options.add_argument("--file-repeats", type=int, default=1)
    options.add_argument("--play-moves", type=int, default=200)
    options.add_argument("--every", type=int, default=1, help="blocks from the end of a move to the next; it takes two")
    options.add_argument("--play-s", type=float, default=170.0, help="no segment of those moves begins later")
    options.add_argument("--replay-s", type=float, default=120.0, help="computing their records anew ends by then")
    options.add_argument("--after", type=int, default=50, help="blocks played on after the last move")
    options.add_argument("--links", default=LINKS, help="as `bench.under_play --ways`")
    options.add_argument("--links-s", type=float, default=150.0, help="no move over a link ends later than this")
    options.add_argument("--links-residents", type=int, default=0, help="worlds that play at the second worker then")
    options.add_argument("--crowd", default=CROWD, help="the same beside two worlds at the second worker")
    options.add_argument("--crowd-s", type=float, default=45.0, help="no such move ends later than this")
    options.add_argument("--budget", type=float, default=580.0, help="seconds for all of it")
    return options.parse_args(arguments)


def steps(options: argparse.Namespace, folder: Path) -> list[Step]:
    """Return the steps in order: what counts most first."""
    engine, gpus = f"reference:{options.preset}", ("--gpus", options.gpus)
    is_real = options.preset.startswith("matrix-game")
    python = (sys.executable, "-m")
    return [
        Step(
            name="latents",
            command=(
                *(*WORLDMOVE, "bench", "move", "--json", "--preset", f"{options.preset}-latents", *gpus),
                *("-n", str(options.moves), "--scattered-moves", str(options.scattered_moves)),
                *("--repeats", str(options.repeats), "--file-repeats", str(options.file_repeats)),
            ),
            limit_s=280,
            prints_result=True,
        ),
        Step(
            name="play",
            command=(
                *(*WORLDMOVE, "bench", "live", "--json", "--preset", options.preset, *gpus),
                *("-n", str(options.play_moves), "--every", str(options.every), "--sessions", "2", "--residents", "0"),
                *("--segment", "20", "--within-s", str(options.play_s), "--control", "0.2"),
                *("--replay-s", str(options.replay_s)),
                *("--after", str(options.after)),
            ),
            limit_s=options.play_s + 260,
            prints_result=True,
            needs_s=options.play_s + options.replay_s + 80,
        ),
        _played("links", options, folder, (options.links, options.links_residents, options.links_s)),
        _played("crowd", options, folder, (options.crowd, RESIDENTS, options.crowd_s)),
        Step(
            name="alike",
            command=(
                *python,
                "bench.pair_alike",
                "--engine",
                engine,
                *gpus,
                "--other-engine",
                SMALL if is_real else "",
            ),
            limit_s=150,
            prints_result=True,
        ),
        Step(name="tests", command=(*python, "pytest", "-q", "-rs", "-m", "two_gpus", "tests/gpu"), limit_s=150),
        Step(
            name="doctor",
            # The canary of the full size is looked at by another step, on both GPUs.
            command=(*WORLDMOVE, "doctor", "--json", "--engine", "reference:matrix-tiny"),
            limit_s=120,
            prints_result=True,
        ),
    ]


def _played(name: str, options: argparse.Namespace, folder: Path, of: tuple[str, int, float]) -> Step:
    """Return a step of moves under play. ``of``: by which ways, beside how many worlds, and within how many seconds."""
    ways, residents, within_s = of
    return Step(
        name=name,
        command=(
            *(sys.executable, "-m", "bench.under_play", "--engine", f"reference:{options.preset}"),
            *("--gpus", options.gpus, "--ways", ways, "--residents", str(residents), "--apart"),
            *("--control-blocks", "12", "--within-s", str(within_s)),
            *("--record", f"{folder}/{name}.record", "--out", f"{folder}/{name}.json"),
        ),
        limit_s=within_s + 90,
        needs_s=within_s + 45,
    )


def with_files(found: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what was found, with what steps wrote to files; of a step that ended well no log is kept."""
    results = dict(found["results"])
    for record in folder.glob("*.record"):
        record.unlink()
    for name, entry in found["steps"].items():
        if name in IN_FILES and (folder / f"{name}.json").is_file():
            results[name] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if entry["status"] == 0 and name != "tests":
            (folder / f"{name}.log").unlink(missing_ok=True)
    return {**found, "results": results}


def joined(before: Mapping[str, Any], found: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return one file's content: this command's, and of an earlier one what this one has not."""
    parts = {part: {**before.get(part, {}), **found[part]} for part in ("steps", "results")}
    begin = {key: value for key, value in found.items() if key not in parts}
    goals = [asdict(row) for row in rows(parts["results"])]
    day = found["begun_at"][:10]
    return {"name": f"pair-{label}", "day": day, **begin, "goals": goals, **parts}


if __name__ == "__main__":
    main()
