"""Throw bytes at every decoder for so many seconds each, and file what came of it. ``make fuzz SECONDS=60``

Each decoder has a process of its own (``bench.fuzz_one``) and begins from valid inputs. Ends with 1 where something was
found: the result has the end of that process's words, and the input lies beside it.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from bench.fuzz_decoders import DECODERS, seeds
from bench.record import ROOT, Recorder, label
from tests.hostile.shapes import messages

NUM_MESSAGES = 300
SLACK_S = 120
"""An input of 10 s may be the last; and the decoders take a while to be imported and instrumented."""


def main() -> int:
    """Fuzz what the command line names, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("decoders", nargs="*", help=f"some of {', '.join(DECODERS)}; none: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each decoder")
    parser.add_argument("--out", default=f"bench/results/fuzz-{label()}.json", help="where the result goes")
    options = parser.parse_args()
    recorder = Recorder("fuzz", options)
    found = [_fuzz(name, options.seconds, Path(options.out).parent) for name in options.decoders or DECODERS]
    bad = [row["decoder"] for row in found if row["found"]]
    summary = {
        "atheris": version("atheris"),
        "decoders": len(found),
        "inputs": sum(row["inputs"] for row in found),
        "found": bad,
    }
    recorder.write(summary, {"decoders": found})
    return int(bool(bad))


def _fuzz(name: str, seconds: int, folder: Path) -> dict[str, Any]:
    """Fuzz one decoder. ``edges`` are places in WorldMove's own code between which it went."""
    with TemporaryDirectory(prefix="worldmove-fuzz-") as corpus:
        begun_from = _plant(name, Path(corpus))
        command = [sys.executable, "-m", "bench.fuzz_one", name, f"-max_total_time={seconds}"]
        command += [f"-artifact_prefix={folder.resolve()}/fuzz-", corpus]
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=ROOT, timeout=seconds + SLACK_S, check=False
        )
    said = ended.stderr + ended.stdout
    row = {
        "decoder": name,
        "seeds": begun_from,
        "inputs": _last(r"stat::number_of_executed_units: (\d+)", said),
        "edges": _last(r"cov: (\d+)", said),
        "kept": _last(r"corp: (\d+)", said),
        "memory_mb": _last(r"stat::peak_rss_mb:\s+(\d+)", said),
        "found": said[-2000:] if ended.returncode else "",
    }
    sys.stderr.write(f"{name}: {row['inputs']:,} inputs, {row['edges']} edges{', FOUND' if row['found'] else ''}\n")
    return row


def _plant(name: str, corpus: Path) -> int:
    planted = list(seeds(name, examples))
    for number, seed in enumerate(planted):
        (corpus / f"{number}").write_bytes(seed)
    return len(planted)


def examples(kinds: Any) -> list[Any]:
    """Return some messages of a tagged union, the same ones each time."""
    found: list[Any] = []

    @settings(
        max_examples=NUM_MESSAGES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(message=messages(kinds))
    def collect(message: Any) -> None:
        found.append(message)

    collect()
    return found


def _last(pattern: str, said: str) -> int:
    matches: Sequence[str] = re.findall(pattern, said)
    return int(matches[-1]) if matches else 0


if __name__ == "__main__":
    sys.exit(main())
