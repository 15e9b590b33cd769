"""What the island world remembers, for how long, and how fast it is: the shipped weights in the shipped engine.

Memory: a place is invented, left for N tiles and visited again; its 64 tiles are compared, class and texture. Wiped:
the same with all caches emptied at the turning point. Flags: the same with a flag planted at the start. Drift: the
distance to the nearest tile picture over 300 mixed frames.
"""

import argparse
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from bench.island_player import BACK, CONFIG, Player, distances_of, flagged, kinds_of, tiles_of
from bench.numbers import spread
from bench.record import Recorder, parser
from training.scenes import crosshair_token
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import island

REMEMBERED = (4, 8, 12, 20)
BEYOND = (22, 24, 30)
Sample = dict[str, Any]


def main() -> None:
    """Measure the parts that were asked for and write."""
    options = options_of(None)
    recorder = Recorder("island", options)
    samples = {name: list(PARTS[name](options)) for name in options.parts}
    weights = ReferenceEngine(island(), num_threads=options.threads).spec.weights_sha256
    summary = {name: SUMMARIES[name](rows) for name, rows in samples.items()}
    recorder.write({"weights_sha256": weights, "levels": CONFIG.levels, **summary}, samples)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = parser("island", __doc__)
    options.add_argument("--parts", nargs="+", choices=sorted(PARTS), default=list(PARTS))
    options.add_argument("--sessions", type=int, default=16, help="of each distance; half as many are wiped")
    options.add_argument("--frames", type=int, default=300, help="of each session that is watched for drift")
    options.add_argument("--blocks", type=int, default=60, help="timed for each number of threads")
    options.add_argument("--seed", type=int, default=1000)
    return options.parse_args(arguments)


def memory(options: argparse.Namespace) -> Iterator[Sample]:
    """Out and back: with memory, and wiped at the turning point."""
    engine = ReferenceEngine(island(), num_threads=options.threads)
    for distance, wiped in itertools.product((*REMEMBERED, *BEYOND), (False, True)):
        count = options.sessions // 2 if wiped or distance in BEYOND else options.sessions
        for index in range(count if not wiped or distance in REMEMBERED else 0):
            player = Player(engine, options.seed + index)
            player.block()
            out_and_back(player, list(BACK)[index % 4], distance, wiped=wiped)
            before, after = tiles_of([player.shown[1], player.shown[-1]])
            yield {
                "distance": distance,
                "wiped": wiped,
                "seed": player.seed,
                "exact": float((before == after).mean()),
                "kind": float((kinds_of(before) == kinds_of(after)).mean()),
            }


def flags(options: argparse.Namespace) -> Iterator[Sample]:
    """A flag planted at the start: there at once, there on return, and nowhere else."""
    engine = ReferenceEngine(island(), num_threads=options.threads)
    here = crosshair_token(CONFIG)
    for distance, index in itertools.product(REMEMBERED, range(options.sessions // 2)):
        player = Player(engine, options.seed + 100 + index)
        player.block()
        player.block("flag")
        out_and_back(player, list(BACK)[index % 4], distance, wiped=False)
        before, after = flagged(tiles_of([player.shown[3], player.shown[-1]]))
        yield {
            "distance": distance,
            "seed": player.seed,
            "appeared": bool(before[here]),
            "returned": bool(after[here]),
            "false": int(np.delete(after, here).sum()),
        }


def drift(options: argparse.Namespace) -> Iterator[Sample]:
    """Long mixed walks, by 50 frames."""
    engine = ReferenceEngine(island(), num_threads=options.threads)
    for index in range(max(1, options.sessions // 4)):
        player, dice = Player(engine, options.seed + 200 + index), random.Random(index)
        key = "right"
        while len(player.shown) < options.frames:
            key = dice.choice(list(BACK)) if dice.random() < 0.2 else key
            player.block(*[key] * dice.randint(0, 2), *["flag"] * (dice.random() < 0.05))
        for start in range(0, options.frames, 50):
            part = distances_of(player.shown[start : start + 50])
            yield {"from": start, "seed": player.seed, "rms": float(part.mean()), "over": float((part > 0.1).mean())}


def speed(options: argparse.Namespace) -> Iterator[Sample]:
    """Blocks of a world whose windows are full, one after the other."""
    for num_threads in (1, 2):
        engine = ReferenceEngine(island(), num_threads=num_threads)
        engine.warm_up()
        player = Player(engine, options.seed)
        player.fly("right", max(layer.window for layer in CONFIG.layers) + 4)
        for index in range(options.blocks):
            began, used = time.perf_counter(), time.process_time()
            player.block(list(BACK)[index % 4])
            wall, cpu = time.perf_counter() - began, time.process_time() - used
            yield {"threads": num_threads, "wall_ms": round(1e3 * wall, 2), "cpu_ms": round(1e3 * cpu, 2)}


def out_and_back(player: Player, key: str, distance: int, *, wiped: bool) -> None:
    player.fly(key, distance)
    if wiped:
        player.forget()
    player.fly(BACK[key], distance)


def mean_of(rows: Sequence[Sample], *names: str) -> dict[str, float]:
    return {name: round(float(np.mean([row[name] for row in rows])), 5) for name in names} | {"sessions": len(rows)}


def grouped(rows: Sequence[Sample], *names: str) -> dict[tuple[Any, ...], list[Sample]]:
    groups: dict[tuple[Any, ...], list[Sample]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def memory_summary(rows: Sequence[Sample]) -> Mapping[str, Any]:
    groups = grouped(rows, "distance", "wiped")
    return {
        f"{distance}{' wiped' * wiped}": mean_of(part, "exact", "kind") for (distance, wiped), part in groups.items()
    }


def flags_summary(rows: Sequence[Sample]) -> Mapping[str, Any]:
    return {
        str(key[0]): mean_of(part, "appeared", "returned", "false") for key, part in grouped(rows, "distance").items()
    }


def drift_summary(rows: Sequence[Sample]) -> Mapping[str, Any]:
    return {str(key[0]): mean_of(part, "rms", "over") for key, part in grouped(rows, "from").items()}


def speed_summary(rows: Sequence[Sample]) -> Mapping[str, Any]:
    found = {}
    for (threads,), part in grouped(rows, "threads").items():
        block = spread([row["wall_ms"] for row in part])
        frames_per_s = round(1e3 * CONFIG.frames_per_block / block["p50"], 1)
        cpu = spread([row["cpu_ms"] for row in part])
        found[str(threads)] = {"frames_per_s": frames_per_s, "block_ms": block, "cpu_ms": cpu}
    return found


PARTS: Mapping[str, Callable[[argparse.Namespace], Iterator[Sample]]] = {
    "memory": memory,
    "flags": flags,
    "drift": drift,
    "speed": speed,
}
SUMMARIES: Mapping[str, Callable[[Sequence[Sample]], Mapping[str, Any]]] = {
    "memory": memory_summary,
    "flags": flags_summary,
    "drift": drift_summary,
    "speed": speed_summary,
}


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
