"""Takes every figure, one measurement after another, and writes docs/figures.md from the results.

Nothing else should run on the machine meanwhile: each result says what share of it others used.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.record import ROOT, parser

MEASUREMENTS = ("movable", "pause", "soak")
QUICK = {
    "movable": ("--pairs", "60", "--runs", "10"),
    "pause": ("--moves", "20"),
    "soak": ("--moves", "20", "--segment", "10"),
}
"""For a look at whether everything works; such figures are good for nothing else."""


def main() -> None:
    """Run all of it. Ends with the status of the first measurement that fails."""
    options = options_of(None)
    begun = time.monotonic()
    for name in MEASUREMENTS:
        command = [sys.executable, "-m", f"bench.{name}", "--engine", options.engine, "--threads", str(options.threads)]
        ended = subprocess.run([*command, *(QUICK[name] if options.quick else ())], cwd=ROOT, check=False)
        if ended.returncode:
            sys.exit(ended.returncode)
    subprocess.run([sys.executable, "-m", "bench.figures"], cwd=ROOT, check=True)
    print(f"all of it took {time.monotonic() - begun:.0f} s", file=sys.stderr)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("all", __doc__)
    options.add_argument("--quick", action="store_true", help="a few moves each, to see that it works")
    return options.parse_args(arguments)


if __name__ == "__main__":
    main()
