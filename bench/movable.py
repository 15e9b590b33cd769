"""What it costs a block that its session can be moved: the engine's bare loop and a worker's real path, in pairs.

Both step equal worlds through equal inputs in one process, with one engine. The bare loop is ``engine.step`` on a
session as the engine makes it. The worker's path is that of its process: a message with the closed list, the
copy's loop, the turn, the hop to the engine's thread, the session's memory in its slot's arena, the frames' digests,
and the block's message on the link. The order within a pair alternates.

Then the loop: runs of several blocks whose lists are all there, both ways, from the first list to the last message. A
block's pictures are hashed while the next one is computed, so only the last one's are in its way. With ``--less`` some
runs leave out a part of what is done with pictures: it shows what that part takes, in the same minutes.
"""

import argparse
import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from bench.movable_less import ALL, WAYS, less_of
from bench.numbers import median_interval, spread
from bench.record import Recorder, parser, quiet, require_worker_path
from bench.walk import Walk
from bench.worker_here import WorkerHere, worker_here
from worldmove.engine.base import Engine, KeyChange

GOAL = 1.02
"""On a CPU: of the worker's path to the bare loop. On a GPU 1.01 (``--goal``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One block both ways, ms. ``engine_ms``: what the engine alone took of the worker's path."""

    block: int
    bare_first: bool
    bare_ms: float
    worker_ms: float
    engine_ms: float


def main() -> None:
    """Measure and write."""
    options = options_of(None)
    quiet()
    require_worker_path()
    recorder = Recorder("movable", options)
    pairs, parts, runs, less = asyncio.run(measure(options))
    summary = summary_of(pairs, parts, options.goal) | {"loop": loop_of(runs, options)}
    samples = samples_of(pairs, parts) | {"runs": [list(run) for run in runs]}
    if less:
        summary |= {"loop_with_less": less_of(less, options.run_blocks)}
        samples |= {"less": less}
    recorder.write(summary, samples)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("movable", __doc__)
    options.add_argument("--pairs", type=int, default=320)
    options.add_argument("--runs", type=int, default=40, help="runs of the loop, both ways")
    options.add_argument("--run-blocks", type=int, default=8, help="blocks of each run")
    options.add_argument("--less", type=int, default=0, help="runs of the loop with less of it done, each way")
    options.add_argument("--pictures", type=int, help="threads for pictures; as a worker's process has, if not given")
    options.add_argument("--warm", type=int, default=30, help="blocks before the first pair: every window is full")
    options.add_argument("--goal", type=float, default=GOAL, help="the largest ratio that is good")
    options.add_argument("--seed", type=int, default=3)
    return options.parse_args(arguments)


Run = tuple[float, float]
"""The loop over several blocks: bare, and the worker's; ms."""


Lessened = dict[str, list[list[float]]]
"""The same by what was done, for each round: bare, and the worker's; ms."""


async def measure(
    options: argparse.Namespace,
) -> tuple[list[Pair], dict[str, list[float]], list[Run], Lessened]:
    """Step both worlds; then measure the parts of the worker's path by themselves."""
    async with worker_here(options.engine, options.threads, options.pictures) as worker:
        inputs = Inputs(options.seed)
        bare = Bare(worker.engine, options.seed)
        await worker.open("s-movable", options.seed)
        for block in range(options.warm):
            await _pair(block, inputs.list(block), bare, worker, bare_first=True)
        pairs = []
        for block in range(options.warm, options.warm + options.pairs):
            pairs.append(await _pair(block, inputs.list(block), bare, worker, bare_first=block % 2 == 0))
        first, runs = options.warm + options.pairs, []

        async def run(number: int) -> Run:
            nonlocal first
            lists = [inputs.list(first + at) for at in range(options.run_blocks)]
            first += len(lists)
            return await _run(first - len(lists), lists, bare, worker, bare_first=number % 2 == 0)

        for number in range(options.runs):
            runs.append(await run(number))
        less: Lessened = {way.name: [] for way in WAYS} if options.less else {}
        for number in range(options.less):
            for way in WAYS:
                worker.lessen(way)
                less[way.name].append(list(await run(number)))
        worker.lessen(ALL)
        return pairs, await _parts(worker, bare, options.pairs), runs, less


class Inputs:
    """The scripted walk as closed lists."""

    def __init__(self, seed: int) -> None:
        self._walk = Walk(seed)
        self._number = 0

    def list(self, block: int) -> tuple[KeyChange, ...]:
        """Return a block's list. Ask for each once, in order."""
        changes = []
        for key, down in self._walk.changes(block):
            self._number += 1
            changes.append(KeyChange(number=self._number, key=key, down=down))
        return tuple(changes)


class Bare:
    """The engine's bare loop over one session, in the thread that the worker's blocks are computed in too."""

    def __init__(self, engine: Engine[Any], seed: int) -> None:
        self.engine = engine
        self.session = engine.open(seed)
        self.frames = b""

    def step(self, changes: Sequence[KeyChange]) -> float:
        """Step one block; return the ms it took."""
        begin = time.perf_counter()
        block = self.engine.step(self.session, changes)
        took_ms = (time.perf_counter() - begin) * 1000
        self.frames = block.frames.tobytes()
        return took_ms

    def steps(self, lists: Sequence[Sequence[KeyChange]]) -> float:
        """Step several blocks, one after another; return the ms they took."""
        begin = time.perf_counter()
        for changes in lists:
            block = self.engine.step(self.session, changes)
        took_ms = (time.perf_counter() - begin) * 1000
        self.frames = block.frames.tobytes()
        return took_ms


async def _pair(
    block: int, changes: tuple[KeyChange, ...], bare: Bare, worker: WorkerHere, *, bare_first: bool
) -> Pair:
    """Step one block both ways. Raises RuntimeError if the frames differ."""

    async def bare_step() -> float:
        return await worker.engine_thread(partial(bare.step, changes))

    async def worker_step() -> float:
        return await worker.block(block, changes)

    ways: tuple[Callable[[], Awaitable[float]], ...] = (bare_step, worker_step)
    first, second = ways if bare_first else ways[::-1]
    took = (await first(), await second())
    done = worker.last
    if done.frames != bare.frames:
        raise RuntimeError(f"block {block}: the worker's frames are not the bare loop's")
    bare_ms, worker_ms = took if bare_first else took[::-1]
    return Pair(
        block=block, bare_first=bare_first, bare_ms=bare_ms, worker_ms=worker_ms, engine_ms=done.compute_s * 1000
    )


async def _run(
    first: int, lists: Sequence[tuple[KeyChange, ...]], bare: Bare, worker: WorkerHere, *, bare_first: bool
) -> Run:
    """Run the loop both ways. Raises RuntimeError if the last frames differ."""

    async def bare_loop() -> float:
        return await worker.engine_thread(partial(bare.steps, lists))

    took = [] if not bare_first else [await bare_loop()]
    took.append(await worker.blocks(first, lists))
    if not bare_first:
        took.insert(0, await bare_loop())
    if worker.last.frames != bare.frames:
        raise RuntimeError(f"block {first + len(lists) - 1}: the worker's frames are not the bare loop's")
    return took[0], took[1]


async def _parts(worker: WorkerHere, bare: Bare, repeats: int) -> dict[str, list[float]]:
    """Measure what the worker's path does beside the engine, each part alone, in ms."""
    done = worker.last
    size = len(done.frames) // len(done.frame_sha256)
    frames = [done.frames[at : at + size] for at in range(0, len(done.frames), size)]
    work: dict[str, Callable[[], object]] = {
        "digests of the frames": lambda: [hashlib.sha256(frame).digest() for frame in frames],
        "message encoded and written": lambda: worker.send(done),
    }
    parts = {name: [_timed(job) for _ in range(repeats)] for name, job in work.items()}
    parts["hop to the engine's thread and back"] = [await _hop(worker) for _ in range(repeats)]
    return parts


async def _hop(worker: WorkerHere) -> float:
    begin = time.perf_counter()
    await worker.engine_thread(_nothing)
    return (time.perf_counter() - begin) * 1000


def _nothing() -> None:
    return


def _timed(job: Callable[[], object]) -> float:
    begin = time.perf_counter()
    job()
    return (time.perf_counter() - begin) * 1000


def summary_of(pairs: Sequence[Pair], parts: dict[str, list[float]], goal: float) -> dict[str, Any]:
    """Say what came out, and whether it is good."""
    ratios = [pair.worker_ms / pair.bare_ms for pair in pairs]
    engine_ratios = [pair.engine_ms / pair.bare_ms for pair in pairs]
    low, high = median_interval(ratios)
    beside = [pair.worker_ms - pair.engine_ms for pair in pairs]
    return {
        "pairs": len(pairs),
        "ratio": round(median(ratios), 4),
        "ratio_interval_95": [round(low, 4), round(high, 4)],
        "goal": goal,
        "goal_met": median(ratios) <= goal,
        "interval_below_goal": high <= goal,
        "ratio_bare_first": _ratio(pairs, bare_first=True),
        "ratio_worker_first": _ratio(pairs, bare_first=False),
        "engine_ratio": round(median(engine_ratios), 4),
        "engine_ratio_interval_95": [round(edge, 4) for edge in median_interval(engine_ratios)],
        "bare_ms": spread([pair.bare_ms for pair in pairs]),
        "worker_ms": spread([pair.worker_ms for pair in pairs]),
        "engine_in_worker_ms": spread([pair.engine_ms for pair in pairs]),
        "beside_the_engine_ms": spread(beside),
        "parts_ms": {name: spread(values, 4) for name, values in parts.items()},
    }


def loop_of(runs: Sequence[Run], options: argparse.Namespace) -> dict[str, Any]:
    """Say how long the loop takes both ways, and whether that is good."""
    if not runs:
        return {}
    ratios = [worker_ms / bare_ms for bare_ms, worker_ms in runs]
    low, high = median_interval(ratios)
    return {
        "runs": len(runs),
        "blocks": options.run_blocks,
        "ratio": round(median(ratios), 4),
        "ratio_interval_95": [round(low, 4), round(high, 4)],
        "goal": options.goal,
        "goal_met": median(ratios) <= options.goal,
        "interval_below_goal": high <= options.goal,
        "bare_ms": spread([bare_ms for bare_ms, _ in runs]),
        "worker_ms": spread([worker_ms for _, worker_ms in runs]),
    }


def _ratio(pairs: Sequence[Pair], *, bare_first: bool) -> float:
    return round(median(pair.worker_ms / pair.bare_ms for pair in pairs if pair.bare_first is bare_first), 4)


def samples_of(pairs: Sequence[Pair], parts: dict[str, list[float]]) -> dict[str, Any]:
    """Return everything that was measured."""
    rows = [
        {
            "block": pair.block,
            "bare_first": pair.bare_first,
            "bare_ms": round(pair.bare_ms, 4),
            "worker_ms": round(pair.worker_ms, 4),
            "engine_ms": round(pair.engine_ms, 4),
        }
        for pair in pairs
    ]
    return {"pairs": rows, **{name: [round(value, 5) for value in values] for name, values in parts.items()}}


if __name__ == "__main__":
    main()
