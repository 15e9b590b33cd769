"""What the fingerprint of device memory and the fused copies cost on one GPU. Pure."""

from collections.abc import Mapping
from typing import Any

from bench.markdown import paragraph, table

ROWS = (
    ("a program that reads every byte and does next to nothing", "read and fold", 1),
    ("WMF1: the digests of all groups", "wmf1", 1),
    ("a flat copy within the device", "flat copy", 2),
    ("the same tensors gathered by one launch", "gather", 2),
    ("gathered, and digested on the way", "gather with digest", 2),
)
"""In words, in the result, and how often the bytes cross the device's memory."""


def wmf1(machine: str, result: Mapping[str, Any]) -> list[str]:
    """Return the section of one machine."""
    hardware, versions, launching = result["hardware"], result["versions"], result["launching"]
    num_bytes = result["num_bytes"]
    rows = []
    for words, name, crossings in ROWS:
        took = result[name]["median_ms"]
        rows.append((words, f"{took:.3f}", f"{crossings * num_bytes / took / 1e9:.2f}"))
    return [
        f"## {machine}\n",
        paragraph(
            f"One {hardware['accelerator']}, torch {versions['torch']}, CUDA {versions['cuda']},",
            f"Python {versions['python']}.",
        ),
        "### The fingerprint of device memory\n",
        paragraph(
            f"`bench/gpu_fingerprint.py`, {result['day']}, commit `{result['commit'][:10]}`.",
            f"{num_bytes / 1e9:.2f} GB as a matrix-game-2 session has it: 420 tensors, and 180 of 8 bytes.",
            "Medians of 40 on the device's own clock.",
            "Digests were compared with the twin's on every path, and copies byte for byte.",
        ),
        table(("", "ms", "TB/s through memory"), rows),
        paragraph(
            f"The host takes {launching['launch_us']:.0f} µs to launch,",
            f"and has all digests {launching['joined_us']:.0f} µs after it began to.",
            f"A layout is planned in {launching['plan_ms']:.1f} ms,",
            f"a key's table made in {launching['table_ms']:.1f} ms, both before a freeze.",
        ),
    ]
