"""What moving under play costs on a GPU, over paths of many speeds, in one command and within one limit.

    python -m tests.gpu.wheelhouse run wheelhouse python -m bench.gpu_play --out FOLDER

Each step has a limit of its own and a file in the folder; ``gpu_play.json`` says what became of each, as soon as that
is known. The first needs nobody else on the device; half of its moves fit into one command, so it is given twice. With
``--preset matrix-tiny`` all of it is tried without one.

    sanity     asked for by --only: 40 s, a move by each strategy, of the small preset and of this one, with its phases
    play       moves over 100, 25, 10 and 1 Gb/s as admission chooses, others between them, and the edges of admission
    verify     the record of it, computed anew on an engine that never moved
    resident   moves by replay to a worker that plays another world; without decoders, since three complete worlds
               on one GPU leave no time to catch up, and apart, since blocks that always lie beside others' are taken
               to be as long wherever they lie
    failover   kill -9 of a protected world's worker, again and again
    island     asked for by --only: 510 moves in a row of the CPU's engine, which leaves the device alone
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu_all import WORLDMOVE, Step, take, write_json
from bench.record import dumped, label

USUAL = ("play", "verify", "resident", "failover")
LINKS = "any@100gbit*20,any@25gbit*20,any@10gbit*20,any@1gbit*3"
OTHERS = "boundary-copy*13,pre-copy*13,streaming*13"
ISLAND = "boundary-copy*140,pre-copy*130,streaming*130,replay*80,replay@1gbit*30"
RESIDENT = "replay@25gbit*4,replay@10gbit*2"


def main() -> None:
    """Take the steps; end with 1 if one of them failed."""
    options = options_of(None)
    folder = Path(options.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [step for step in steps(options, folder) if step.name in options.only.split(",")]

    def note(found: Mapping[str, Any]) -> None:
        """Write all that there is by now: whoever ends this command early has that much."""
        write_json(folder / "gpu_play.json", {"name": "gpu_play", **found})
        if "verify" in found["results"]:
            with_replay(folder / f"under_play-{options.label}.json", found["results"]["verify"])

    found = take(chosen, folder, options.budget, time.monotonic, note)
    record_of(options, folder).unlink(missing_ok=True)
    sys.exit(any(entry["status"] != 0 for entry in found["steps"].values()))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.gpu_play", description=__doc__)
    options.add_argument("--out", required=True, help="the folder for everything")
    options.add_argument("--label", default="h200", help="the machine's name in file names")
    options.add_argument("--preset", default="matrix-game-2")
    options.add_argument("--only", default=",".join(USUAL), help="these steps alone, with commas")
    options.add_argument("--links", default=LINKS, help="moves as admission chooses: see bench.under_play")
    options.add_argument("--others", default=OTHERS, help="moves between them")
    options.add_argument("--edges", default="boundary-copy,pre-copy,streaming,replay")
    options.add_argument("--play-s", type=float, default=170.0, help="no move of the first step ends later than this")
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--budget", type=float, default=590.0, help="seconds for all of it")
    return options.parse_args(arguments)


def with_replay(path: Path, replay: dict[str, Any]) -> None:
    """Put into the first step's result, where it has one, what the record, computed anew, has come to."""
    if not path.is_file():
        return
    result = json.loads(path.read_text(encoding="utf-8"))
    result["summary"]["replay"] = replay
    path.write_text(dumped(result), encoding="utf-8")


def record_of(options: argparse.Namespace, folder: Path) -> Path:
    """Return where the moved world's record lies between two steps."""
    return folder / f"under_play-{options.label}.record"


def steps(options: argparse.Namespace, folder: Path) -> list[Step]:
    """Return the steps in order: what counts most first."""
    engine, record = f"reference:{options.preset}", record_of(options, folder)
    play = (sys.executable, "-m", "bench.under_play", "--engine", engine)
    return [
        Step(
            name="sanity",
            command=(
                *(sys.executable, "-m", "bench.sanity", "--engines", f"reference:matrix-tiny,{engine}"),
                *("--out", f"{folder}/sanity-{options.label}.json"),
            ),
            limit_s=150,
        ),
        Step(
            name="play",
            command=(
                *play,
                *("--ways", f"{options.links},{options.others}".strip(","), "--edges", options.edges),
                *("--within-s", str(options.play_s), "--record", str(record)),
                *("--out", f"{folder}/under_play-{options.label}.json"),
            ),
            limit_s=options.play_s + 60,
            needs_s=options.play_s + 45,
        ),
        Step(
            name="verify",
            command=(*WORLDMOVE, "verify", str(record), "--engine", engine, "--json"),
            limit_s=220,
            prints_result=True,
        ),
        Step(
            name="resident",
            command=(
                *(sys.executable, "-m", "bench.under_play", "--engine", f"{engine}-latents", "--ways", RESIDENT),
                *("--residents", "1", "--apart", "--control-blocks", "16", "--within-s", "60"),
                *("--out", f"{folder}/resident-{options.label}.json"),
            ),
            limit_s=150,
        ),
        Step(
            name="failover",
            command=(
                *(sys.executable, "-m", "bench.failover", "--engine", engine, "--kills", str(options.kills)),
                *("--protect", "8", "--within-s", "60", "--out", f"{folder}/failover-{options.label}.json"),
            ),
            limit_s=150,
        ),
        Step(
            name="island",
            command=(
                *(sys.executable, "-m", "bench.under_play", "--engine", "reference:island", "--ways", ISLAND),
                *("--control-blocks", "80", "--within-s", "500", "--out", f"{folder}/under_play-{label()}.json"),
            ),
            limit_s=1000,  # computing 1,500 blocks anew takes as long again
        ),
    ]


if __name__ == "__main__":
    main()
