"""WMF1 and the fused copies on a GPU: checked against the twin, then timed beside a flat copy of the same bytes.

    python -m bench.gpu_fingerprint --out fingerprint.json

One variant that fails is recorded with its error and stops no other.
"""

import argparse
import os
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from worldmove.cli.json_text import json_text
from worldmove.state import wmf1
from worldmove.state.kernels import Copies, Fingerprints, Tuning

LEAVES = ((60, 16_220_160), (60, 10_813_440), (60, 12_288), (120, 789_504 // 2), (180, 8))
"""Leaves and bytes of the matrix-game-2 caches: self, mouse, keyboard, cross attention (k, v), indices."""

GROUP = 1 << 20
REPEATS = 40
KEY = bytes(range(32))

ROW_VARIANTS = [
    Tuning(stages=stages, warps=warps, blocks=blocks, share_rows=share_rows)
    for stages, warps, blocks, share_rows in (
        (3, 8, 1, 8), (3, 8, 1, 4), (3, 8, 1, 12), (2, 8, 1, 8), (4, 8, 1, 8),
    )
]  # fmt: skip
COPY_VARIANTS = [
    Tuning(copy_threads=threads, copy_blocks=blocks, share_loads=loads)
    for threads, blocks, loads in (
        (512, 2, 4), (512, 4, 4), (1024, 1, 4), (256, 4, 4),
    )
]  # fmt: skip


def median_ms(work: Callable[[], object], repeats: int = REPEATS) -> dict[str, float]:
    """Time on the device, by events, begun while the device is busy: how long the host takes to launch is not in it.

    ``idle_ms`` is the same on an idle device, from before the launch.
    """
    for _ in range(5):
        work()
    found = {}
    for name, cycles in (("idle_ms", 0), ("median_ms", 600_000)):
        times = []
        for _ in range(repeats):
            torch.cuda.synchronize()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            if cycles:
                torch.cuda._sleep(cycles)
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        found[name] = statistics.median(times)
    return {**found, "min_ms": min(times), "max_ms": max(times)}


def groups_of(tensors: Sequence[torch.Tensor]) -> list[list[tuple[int, int]]]:
    """Cut each tensor into groups of 1 MiB."""
    return [
        [(tensor.data_ptr() + begin, min(GROUP, tensor.nbytes - begin))]
        for tensor in tensors
        for begin in range(0, tensor.nbytes, GROUP)
    ]


def random_leaves(device: torch.device) -> list[torch.Tensor]:
    """The caches of one session, scattered, with random bytes."""
    noise = torch.Generator(device).manual_seed(5)
    sizes = [size for count, size in LEAVES for _ in range(count)]
    return [
        torch.randint(-(2**63), 2**63 - 1, (size // 8,), generator=noise, device=device, dtype=torch.int64)
        for size in sizes
    ]


def attempt(record: dict[str, Any], name: str, work: Callable[[], dict[str, Any]]) -> None:
    """Run one part; what it raises is its result."""
    begin = time.perf_counter()
    try:
        record[name] = work()
    except Exception as error:  # noqa: BLE001 - a variant that cannot be built is a result
        record[name] = {"error": f"{type(error).__name__}: {error}"[:600], "trace": traceback.format_exc()[-1500:]}
    record[name]["took_s"] = round(time.perf_counter() - begin, 2)


def check(device: torch.device, tuning: Tuning) -> dict[str, Any]:
    """Compare with the twin: every path, small and large groups, a launch that copies, pieces of every alignment."""
    table = wmf1.Table.of(KEY)
    memory = torch.randint(0, 256, (8 << 20,), dtype=torch.uint8, device=device)
    base, host = memory.data_ptr(), memory.cpu().numpy()
    extents = [
        [(0, GROUP)], [(GROUP, 123_456)], [(2_000_000, 16)], [(2_100_001, 5_000)], [(2_400_000, 7)],
        [(2_200_000, 48), (2_200_100, 3), (2_200_200, 4_096)], [(3 << 20, GROUP)], [(4 << 20, GROUP - 4_096)],
        [((5 << 20) + 4, GROUP)], [((6 << 20) + 3, GROUP)],
    ]  # fmt: skip
    groups = [[(base + begin, length) for begin, length in group] for group in extents]
    data = [b"".join(host[begin : begin + length].tobytes() for begin, length in group) for group in extents]
    indices = 7 + np.arange(len(groups))
    want = tuple(wmf1.group_digest(table, part, 7 + index) for index, part in enumerate(data))
    kernel = Fingerprints(device, tuning=tuning)
    plain = kernel.launch(kernel.plan(groups, indices), table).result() == want
    result = torch.zeros_like(memory)
    shift = result.data_ptr() - base
    targets = [[address + shift for address, _ in group] for group in groups]
    copying = kernel.launch(kernel.plan(groups, indices, targets=targets), table).result() == want
    expected = np.zeros_like(host)
    for begin, length in (piece for group in extents for piece in group):
        expected[begin : begin + length] = host[begin : begin + length]
    copied = bool((result.cpu().numpy() == expected).all())
    return {"digests_equal": plain, "copying_digests_equal": copying, "copied_equal": copied}


def check_copies(device: torch.device, tuning: Tuning) -> dict[str, Any]:
    """Copy pieces of every alignment of source and target, and see that nothing else was touched."""
    source = torch.randint(1, 256, (1 << 20,), dtype=torch.uint8, device=device)
    target, expected = torch.zeros_like(source), torch.zeros_like(source)
    pieces = []
    for number in range(256):
        begin, to, length = number * 4096 + number % 16, number * 4096 + number // 16, (number * 37) % 3900
        pieces.append((source.data_ptr() + begin, target.data_ptr() + to, length))
        expected[to : to + length] = source[begin : begin + length]
    copies = Copies(device, tuning=tuning)
    copies.launch(copies.plan(pieces))
    return {"equal": bool(torch.equal(target, expected))}


def compile_once(device: torch.device) -> dict[str, Any]:
    """How long it takes before the first launch."""
    Fingerprints(device)
    return {}


def time_fingerprint(device: torch.device, leaves: list[torch.Tensor], tuning: Tuning) -> dict[str, Any]:
    kernel = Fingerprints(device, tuning=tuning)
    table = wmf1.Table.of(KEY)
    plan = kernel.plan(groups_of(leaves))
    found = kernel.launch(plan, table).result()
    times = median_ms(lambda: kernel.launch(plan, table))
    sample = [0, 1, 15, len(found) // 2, len(found) - 1]
    flat = [piece for group in groups_of(leaves) for piece in group]
    begins = {leaf.data_ptr(): leaf for leaf in leaves}
    equal = all(found[place] == _twin(table, begins, flat[place], place) for place in sample)
    return {
        **times,
        "tb_per_s": plan.num_bytes / times["median_ms"] / 1e9,
        "sample_equals_twin": equal,
        **asdict(tuning),
    }


def _twin(table: wmf1.Table, begins: dict[int, torch.Tensor], piece: tuple[int, int], index: int) -> bytes:
    address, length = piece
    start = max(begin for begin in begins if begin <= address)
    data = begins[start].view(torch.uint8)[address - start : address - start + length].cpu().numpy().tobytes()
    return wmf1.group_digest(table, data, index)


def scattered(leaves: list[torch.Tensor]) -> tuple[torch.Tensor, list[tuple[int, int, int]]]:
    """An arena, and what brings each leaf into it at the next 256 bytes."""
    begins = np.cumsum([0] + [-(-leaf.nbytes // 256) * 256 for leaf in leaves]).tolist()
    arena = torch.zeros(begins[-1], dtype=torch.uint8, device=leaves[0].device)
    addresses = [arena.data_ptr() + begin for begin in begins[:-1]]
    return arena, [(leaf.data_ptr(), to, leaf.nbytes) for leaf, to in zip(leaves, addresses, strict=True)]


def _landed(arena: torch.Tensor, leaves: list[torch.Tensor], pieces: list[tuple[int, int, int]]) -> bool:
    begins = [to - arena.data_ptr() for _, to, _ in pieces]
    return all(
        torch.equal(arena[begin : begin + leaf.nbytes].view(torch.int64), leaf)
        for begin, leaf in zip(begins, leaves, strict=True)
    )


def time_copies(device: torch.device, leaves: list[torch.Tensor], tuning: Tuning) -> dict[str, Any]:
    copies = Copies(device, tuning=tuning)
    arena, pieces = scattered(leaves)
    plan = copies.plan(pieces)
    times = median_ms(lambda: copies.launch(plan))
    return {**times, "landed": _landed(arena, leaves, pieces), **asdict(tuning)}


def time_gather_with_digest(device: torch.device, leaves: list[torch.Tensor], tuning: Tuning) -> dict[str, Any]:
    kernel = Fingerprints(device, tuning=tuning)
    table = wmf1.Table.of(KEY)
    arena, pieces = scattered(leaves)
    groups = groups_of(leaves)
    targets = [[to + begin] for _, to, size in pieces for begin in range(0, size, GROUP)]
    plan = kernel.plan(groups, targets=targets)
    times = median_ms(lambda: kernel.launch(plan, table))
    same = kernel.launch(plan, table).result() == kernel.launch(kernel.plan(groups), table).result()
    return {**times, "landed": _landed(arena, leaves, pieces), "digests_equal": same, **asdict(tuning)}


def time_flat(leaves: list[torch.Tensor]) -> dict[str, Any]:
    arena, _ = scattered(leaves)
    other = torch.empty_like(arena)
    return {**median_ms(lambda: other.copy_(arena)), "num_bytes": arena.nbytes}


def time_fold(device: torch.device, leaves: list[torch.Tensor]) -> dict[str, Any]:
    """Read every byte, and next to nothing else; the fastest of a few shapes."""
    fold = import_module("bench.gpu_fold").fold
    words = scattered(leaves)[0].view(torch.int32)
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    found = {}
    for block, per in ((4096, 8), (8192, 4), (4096, 4)):
        sums = torch.zeros(processors * per, dtype=torch.int32, device=device)
        times = median_ms(partial(fold, words, sums, block))
        found[f"block {block}, {per} a processor"] = times["median_ms"]
    return {"median_ms": min(found.values()), "each": found}


def time_host(device: torch.device, leaves: list[torch.Tensor]) -> dict[str, Any]:
    """What the host does for one launch, and from launch to digests in hand."""
    kernel = Fingerprints(device)
    table = wmf1.Table.of(KEY)
    begin = time.perf_counter()
    plan = kernel.plan(groups_of(leaves))
    planned = time.perf_counter() - begin
    figures: dict[str, list[float]] = {
        name: [] for name in ("launch", "pointed_launch", "result", "joined", "numbers", "shift")
    }
    for number in range(60):
        torch.cuda.synchronize()
        start = time.perf_counter()
        pending = kernel.launch(plan, table)
        figures["pointed_launch" if number % 2 else "launch"].append(time.perf_counter() - start)
        ask = ("result", "joined", "numbers")[number % 3]
        getattr(pending, ask)()
        figures[ask].append(time.perf_counter() - start)
        if number % 2 == 0:
            start = time.perf_counter()
            plan.shift([(0, 1, 0)])
            figures["shift"].append(time.perf_counter() - start)
    start = time.perf_counter()
    fresh = wmf1.Table.of(b"n" * 32)
    made = time.perf_counter()
    kernel.prepare(fresh)
    prepared = time.perf_counter()
    copies = Copies(device)
    pieces = scattered(leaves)[1]
    copying = copies.plan(pieces)
    copies.launch(copying)
    torch.cuda.synchronize()
    copy_launch = time.perf_counter()
    copies.launch(copying)
    copy_launched = time.perf_counter()
    torch.cuda.synchronize()
    return {
        **{f"{name}_us": round(statistics.median(values) * 1e6, 1) for name, values in figures.items()},
        "plan_ms": round(planned * 1e3, 2),
        "table_ms": round((made - start) * 1e3, 2),
        "prepare_us": round((prepared - made) * 1e6, 1),
        "copy_launch_us": round((copy_launched - copy_launch) * 1e6, 1),
        "copy_done_us": round((time.perf_counter() - copy_launch) * 1e6, 1),
    }


def head(device: torch.device) -> dict[str, Any]:
    """Say what was measured, and on what. The commit of a copy without history is named by WORLDMOVE_COMMIT."""
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": "gpu_fingerprint",
        "day": datetime.now(UTC).date().isoformat(),
        "command": "python -m bench.gpu_fingerprint " + " ".join(sys.argv[1:]),
        "hardware": {"accelerator": properties.name, "processors": properties.multi_processor_count},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda},
        "commit": os.environ.get("WORLDMOVE_COMMIT", ""),
    }


def take(out: Path, budget_s: float) -> dict[str, Any]:
    """Take everything; variants stop when the time is up."""
    began = time.perf_counter()
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    record = head(device)
    attempt(record, "compile", lambda: compile_once(device))
    attempt(record, "check", lambda: check(device, Tuning()))
    attempt(record, "check of another tuning", lambda: check(device, ROW_VARIANTS[3]))
    attempt(record, "check of copies", lambda: check_copies(device, Tuning()))
    leaves = random_leaves(device)
    record["num_bytes"] = sum(leaf.nbytes for leaf in leaves)
    attempt(record, "flat copy", lambda: time_flat(leaves))
    attempt(record, "read and fold", lambda: time_fold(device, leaves))
    attempt(record, "wmf1", lambda: time_fingerprint(device, leaves, Tuning()))
    attempt(record, "gather", lambda: time_copies(device, leaves, Tuning()))
    attempt(record, "gather with digest", lambda: time_gather_with_digest(device, leaves, Tuning()))
    attempt(record, "launching", lambda: time_host(device, leaves))

    def shape(tuning: Tuning) -> str:
        return f"stages={tuning.stages} warps={tuning.warps} blocks={tuning.blocks} share={tuning.share_rows}"

    def copy_shape(tuning: Tuning) -> str:
        return f"threads={tuning.copy_threads} blocks={tuning.copy_blocks} share={tuning.share_loads}"

    parts: list[tuple[str, Callable[[], dict[str, Any]]]] = []
    for tuning in ROW_VARIANTS:
        parts.append((f"wmf1 {shape(tuning)}", partial(time_fingerprint, device, leaves, tuning)))
        parts.append((f"with digest {shape(tuning)}", partial(time_gather_with_digest, device, leaves, tuning)))
    parts += [(f"gather {copy_shape(t)}", partial(time_copies, device, leaves, t)) for t in COPY_VARIANTS]
    for name, work in parts:
        if time.perf_counter() - began > budget_s:
            record[name] = {"error": "no time was left"}
            continue
        attempt(record, name, work)
        out.write_text(json_text(record, indent=1))
    attempt(record, "flat copy again", lambda: time_flat(leaves))
    record["took_s"] = round(time.perf_counter() - began, 1)
    out.write_text(json_text(record, indent=1))
    return record


def table_of(record: dict[str, Any]) -> str:
    lines = []
    for name, found in record.items():
        if not isinstance(found, dict):
            lines.append(f"{name:60} {found}")
        elif "error" in found:
            lines.append(f"{name:60} {found['error'][:110]}")
        elif "median_ms" in found:
            wrong = [key for key, value in found.items() if value is False]
            rate = record["num_bytes"] / found["median_ms"] / 1e9
            times = f"{found['median_ms']:.4f} ms {rate:.2f} TB/s (idle {found.get('idle_ms', 0):.4f})"
            lines.append(f"{name:60} {times} {wrong or ''}")
        else:
            lines.append(f"{name:60} {found}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=80, help="seconds after which no variant is begun")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    print(table_of(take(options.out, options.budget)))


if __name__ == "__main__":
    main()
