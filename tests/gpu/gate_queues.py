"""Which streams does one hold up that waits at a gate? By how many queues a device has, and who made the streams.

    python -m tests.gpu.gate_queues [--out FILE]       half a minute on one GPU; one line for each variant

Each variant is a process of its own: the number of queues is read when a context is made. ``pool``: torch's streams, of
a pool that it shares among whoever asks; ``gate``: the waiting one is the driver's, made for this alone, the others
torch's; ``own``: all are the driver's. What is held up is counted 50 ms after it was asked for, and again once the gate
is open: then nothing may be.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from tests.gpu.children import environment

ROOT = Path(__file__).parents[2]
QUEUES, MAKERS, COUNTS = ("8", "32"), ("pool", "gate", "own"), (4, 16, 64)
SIDE_BY_SIDE, LIMIT_S = 4, 60.0
WAIT_S, AT_LAST_S = 0.05, 15.0
NUMBER, AHEAD, NON_BLOCKING = 7, -1, 1


def main() -> None:
    """Take every variant, or be one."""
    options = argparse.ArgumentParser(prog="python -m tests.gpu.gate_queues", description=__doc__)
    options.add_argument("--out", default="", help="also write all of it here, as JSON")
    options.add_argument("--one", nargs=2, metavar=("MAKER", "COUNT"), help="be one variant")
    given = options.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(held_up(given.one[0], int(given.one[1]))) + "\n")
        return
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        found = list(pool.map(_variant, product(QUEUES, MAKERS, COUNTS)))
    for row in found:
        sys.stdout.write(said(row) + "\n")
    if given.out:
        Path(given.out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def said(row: dict[str, Any]) -> str:
    """Say one variant in a line."""
    name = f"{row['queues']:>2} queues, {row['maker']:4}, {row['count']:2} streams: "
    if "why" in row:
        return f"{name}{row['why']}"
    return name + f"{len(row['held_up'])} held up {row['held_up']}, {row['held_up_after']} once it is open"


def _variant(variant: tuple[str, str, int]) -> dict[str, Any]:
    queues, maker, count = variant
    row = {"queues": int(queues), "maker": maker, "count": count}
    command = (sys.executable, "-m", "tests.gpu.gate_queues", "--one", maker, str(count))
    variables = environment() | {"CUDA_DEVICE_MAX_CONNECTIONS": queues}
    try:
        ended = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {**row, "why": f"it took longer than {LIMIT_S:.0f} s"}
    if ended.returncode:
        return {**row, "why": ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else "it failed"}
    return {**row, **json.loads(ended.stdout.splitlines()[-1])}


def held_up(maker: str, count: int) -> dict[str, Any]:
    """Let one stream wait at a gate; return which of the others have not done what they were asked for meanwhile."""
    import torch

    from worldmove.state import cuda_driver
    from worldmove.state.gate import OwnGate
    from worldmove.state.kits import kit_of

    kit: Any = kit_of("cuda")
    torch.cuda.set_device(0)
    waiting = torch.cuda.Stream(priority=AHEAD) if maker == "pool" else _own(AHEAD)
    streams = [_own(0) if maker == "own" else torch.cuda.Stream() for _ in range(count)]
    numbers = [torch.zeros(1 << 16, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    _asked(streams, numbers)  # kernels are loaded at first, and events are made: both wait for all that a device does
    torch.cuda.synchronize()
    gate = OwnGate(kit)
    latch = gate.for_number(NUMBER)
    at_last = threading.Timer(AT_LAST_S, latch.open)
    at_last.start()
    try:
        cuda_driver.wait_for_word(0, *latch.word, waiting.cuda_stream)
        events = _asked(streams, numbers)
        time.sleep(WAIT_S)
        held = [number for number, event in enumerate(events) if not event.query()]
    finally:
        latch.open()
        at_last.cancel()
    torch.cuda.synchronize()
    after = sum(not event.query() for event in events)
    return {"held_up": held, "held_up_after": after, "said": os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]}


def _asked(streams: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
    """Ask each stream for a little work; return the event behind it."""
    import torch

    events = []
    for stream, number in zip(streams, numbers, strict=True):
        with torch.cuda.stream(stream):
            number.add_(1)
            event = torch.cuda.Event()
            event.record()
            events.append(event)
    return events


def _own(priority: int) -> Any:
    """Return a stream that the driver makes for this alone."""
    import torch
    from cuda.bindings import driver

    from worldmove.state import cuda_driver

    with cuda_driver.InContext(0):
        made = cuda_driver.call(driver.cuStreamCreateWithPriority, NON_BLOCKING, priority)
    return torch.cuda.ExternalStream(int(made))


if __name__ == "__main__":
    main()
