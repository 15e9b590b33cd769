"""A few moves of each strategy and every phase of theirs, before anything long is begun: does it go as it should?

python -m bench.sanity --engines reference:matrix-tiny,reference:matrix-game-2
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.record import Recorder, parser, quiet, require_worker_path
from bench.under_play import measure
from bench.under_play import options_of as options_of_play
from bench.under_play_found import samples_of, summary_of

ENGINES = "reference:matrix-tiny,reference:matrix-game-2"
WAYS = "boundary-copy,pre-copy,streaming,replay,streaming@25gbit"


def main() -> None:
    """Move, print and write, engine by engine."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("sanity", options)
    summary: dict[str, Any] = {}
    samples: dict[str, Any] = {}
    with TemporaryDirectory(prefix="worldmove-bench-") as folder:
        for number, engine in enumerate(options.engines.split(",")):
            found = asyncio.run(measure(_play(options, engine), Path(folder) / f"{number}.record"))
            summary[engine] = summary_of(found)
            samples[engine] = samples_of(found)["moves"]
            for row in samples[engine]:
                print(said(row), file=sys.stderr, flush=True)
            recorder.keep(summary, samples, Path(options.out))
    recorder.write(summary, samples)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("sanity", __doc__)
    options.add_argument("--engines", default=ENGINES, help="with commas")
    options.add_argument("--ways", default=WAYS, help="as of bench.under_play")
    options.add_argument("--within-s", type=float, default=60.0, help="of each engine: no move ends later")
    return options.parse_args(arguments)


def said(row: Mapping[str, Any]) -> str:
    """Say one move: a line of what it was, and one for each phase, in the order in which they began."""
    told = ("outcome", "reason", "pause_ms", "expected_ms", "took_ms", "pulled_bytes", "followed_bytes", "plain")
    first = f"{row['asked']} {row['link'] or 'as it is'}: " + ", ".join(f"{name} {row[name]}" for name in told)
    phases = sorted(row["phases"].items(), key=lambda phase: phase[1])
    lines = (f"  {name:28}{begin:10.1f}{end:10.1f}{end - begin:9.1f}" for name, (begin, end) in phases)
    return "\n".join((first, f"  {row['terms_ms']}", *lines))


def _play(options: argparse.Namespace, engine: str) -> argparse.Namespace:
    """Return the options of a run of moves under play."""
    return options_of_play(
        [
            *("--engine", engine, "--threads", str(options.threads), "--ways", options.ways),
            *("--control-blocks", "2", "--within-s", str(options.within_s)),
        ]
    )


if __name__ == "__main__":
    main()
