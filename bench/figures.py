"""Writes docs/figures.md, and the README's table, from bench/results. No number in them is written by hand."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures_move import with_moves
from bench.figures_pair import in_short
from bench.figures_play import in_short_play
from bench.figures_text import PLAY, page
from bench.record import ROOT

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "figures.md"
README = ROOT / "README.md"
NAMES = ("pause", "soak", "movable", "wmf1", "move", "live", "staged", "pair", *PLAY)

BEFORE = "before"
"""How the name of a machine begins whose results are of older code, and kept to be compared with."""

Results = Mapping[str, Mapping[str, Any]]
"""By measurement."""


def main() -> None:
    """Write the page, or check that it is what the results say."""
    options = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    options.add_argument("--check", action="store_true", help="end with 1 where the page says something else")
    checks = options.parse_args().check
    for path, text in texts(by_machine()).items():
        if not checks:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what bench/results say; run python -m bench.figures")


def texts(machines: Mapping[str, Results]) -> dict[Path, str]:
    """Return what each page is to say."""
    moves = {machine: results["move"] for machine, results in machines.items() if is_of_now(results)}
    under_play = [
        results["under_play"]
        for name, results in machines.items()
        if "under_play" in results and not name.startswith(BEFORE)
    ]
    largest_first = sorted(under_play, key=lambda result: -result["summary"]["num_bytes"])
    plays = [part for result in largest_first for part in in_short_play(result)]
    pairs = [
        part for name, results in machines.items() if "pair" in results for part in in_short(results["pair"], name)
    ]
    return {PAGE: page(machines), README: with_moves(README.read_text(encoding="utf-8"), moves, [*plays, *pairs])}


def is_of_now(results: Results) -> bool:
    """Say whether a machine's comparison of moves is for the README: not where moves under play were taken since."""
    since = results.get("under_play", {}).get("begun_at", "")
    return "move" in results and results["move"]["day"] >= since[:10]


def by_machine(folder: Path = RESULTS) -> dict[str, Results]:
    """Return every machine's results: files are named MEASUREMENT-MACHINE.json."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        name, _, machine = path.stem.partition("-")
        if name in NAMES:
            found.setdefault(machine, {})[name] = json.loads(path.read_text(encoding="utf-8"))
    return dict(sorted(found.items(), key=lambda item: ("wmf1" in item[1]) + 2 * ("pair" in item[1])))  # GPUs last


if __name__ == "__main__":
    main()
