"""Writes docs/figures.md from the newest results under bench/results. No number in it is written by hand."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures_text import page
from bench.record import ROOT

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "figures.md"
NAMES = ("pause", "soak", "movable", "wmf1")

Results = Mapping[str, Mapping[str, Any]]
"""By measurement."""


def main() -> None:
    """Write the page, or check that it is what the results say."""
    options = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    options.add_argument("--check", action="store_true", help="end with 1 where the page says something else")
    checks = options.parse_args().check
    text = page(by_machine())
    if not checks:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE} is not what bench/results say; run python -m bench.figures")


def by_machine(folder: Path = RESULTS) -> dict[str, Results]:
    """Return every machine's results: files are named MEASUREMENT-MACHINE.json."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        name, _, machine = path.stem.partition("-")
        if name in NAMES:
            found.setdefault(machine, {})[name] = json.loads(path.read_text(encoding="utf-8"))
    return dict(found)


if __name__ == "__main__":
    main()
