"""The path through pinned host memory on one GPU: the link's own rates, pulls by it, and whole verified moves over it.

    python -m bench.staged --out FILE                       on a GPU host
    python -m bench.staged --device double --sizes 33554432 --engines python:tests.worker.device_engine:build
                                                            without one: how it works, not how fast

Both processes may share the device: its one link carries both ways at once, as the two links of two devices would. With
two: ``--device cuda:0 --source cuda:1 --gpus 1,0``.
"""

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.numbers import spread
from bench.pinned import pinned_rates, pinning_ms
from bench.record import Recorder, label, require_worker_path
from bench.staged_ends import Pulls, device_kit, measure_pulls
from worldmove.cli.benches.direct import Direct, measure_direct
from worldmove.transport.ring import RingShape
from worldmove.units import GIB, MIB

SIZES = "1670123520,2740000000"
"""A session's latents, and a complete one."""
SHAPES = "8x16,4x32,8x32,16x8"
ENGINES = "reference:matrix-game-2-latents,reference:matrix-game-2"
GOAL = 0.9
"""Of the slower way's own rate."""


def main() -> None:
    """Take everything, and write it."""
    options = options_of(None)
    require_worker_path()
    recorder = Recorder("staged", options)
    kit, shapes = device_kit(options.device), shapes_of(options.shapes)
    source, gpus = options.source or options.device, [name for name in options.gpus.split(",") if name]
    link = pinned_rates(kit, options.link_bytes, options.repeats)
    pinning = pinning_ms(kit, shapes[0], 3)
    pulls = {
        f"{shape.num_buffers} x {shape.buffer_bytes // MIB} MiB": [
            measure_pulls(source, kit, int(size), shape, options.repeats)
            for size in options.sizes.split(",")[: 1 if number else None]
        ]
        for number, shape in enumerate(shapes)
    }
    moves = {
        engine: measure_direct(engine, 1, options.repeats, lambda _: None, gpus=gpus, path="staged")
        for engine in options.engines.split(",")
        if engine
    }
    recorder.write(summary(link, pinning, pulls, moves), samples(link, pinning, pulls, moves))


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.staged", description=__doc__)
    options.add_argument("--out", default=f"bench/results/staged-{label()}.json", help="where the result goes")
    options.add_argument("--device", default="cuda", help="cuda, cuda:NUMBER, or the double")
    options.add_argument("--source", default="", help="where pulls come from; left out, the same device")
    options.add_argument("--gpus", default="", help="moves go from the first of these to the second, as 0,1")
    options.add_argument("--sizes", default=SIZES, help="bytes of a pull, with commas")
    options.add_argument("--shapes", default=SHAPES, help="rings: buffers x MiB; the first is measured in every size")
    options.add_argument("--engines", default=ENGINES, help="whose sessions are moved, with commas; empty: none")
    options.add_argument("--link-bytes", type=int, default=GIB, help="bytes of one copy over the link")
    options.add_argument("--repeats", type=int, default=20)
    return options.parse_args(arguments)


def shapes_of(words: str) -> list[RingShape]:
    """Read rings, as ``8x16`` names one."""
    pairs = [word.split("x") for word in words.split(",")]
    return [RingShape(int(each) * MIB, int(number)) for number, each in pairs]


def summary(
    link: Mapping[str, Sequence[float]],
    pinning: Mapping[str, Sequence[float]],
    pulls: Mapping[str, Sequence[Pulls]],
    moves: Mapping[str, Direct],
) -> dict[str, Any]:
    """Return medians, and each rate in the link's own."""
    rates = {name: median(values) / 1e9 for name, values in link.items()}
    slower = min(rates["out"], rates["in"])
    return {
        "link_gb_per_s": {name: round(rate, 2) for name, rate in rates.items()},
        "pinning_ms": {name: round(median(values), 2) for name, values in pinning.items()},
        "pulls": [_pull_fields(ring, each, slower) for ring, found in pulls.items() for each in found],
        "moves": [_move_fields(engine, each, slower) for engine, each in moves.items()],
        "goal": GOAL,
    }


def samples(
    link: Mapping[str, Sequence[float]],
    pinning: Mapping[str, Sequence[float]],
    pulls: Mapping[str, Sequence[Pulls]],
    moves: Mapping[str, Direct],
) -> dict[str, Any]:
    """Return every single one."""
    found: dict[str, Any] = {f"link {name} (GB/s)": [round(rate / 1e9, 3) for rate in link[name]] for name in link}
    found |= {f"{name} (ms)": _rounded(values) for name, values in pinning.items()}
    for ring, sizes in pulls.items():
        for each in sizes:
            found[f"pull of {each.num_bytes} by {ring} (ms)"] = _rounded(each.pull_ms)
            found[f"the same scattered, of {each.num_bytes} by {ring} (ms)"] = _rounded(each.scattered_ms)
    for engine, move in moves.items():
        found |= {f"{engine}: {name} (ms)": _rounded(values) for name, values in move.parts.items()}
    return found


def _pull_fields(ring: str, pulls: Pulls, slower: float) -> dict[str, Any]:
    rate = pulls.num_bytes / median(pulls.pull_ms) / 1e6
    return {
        "ring": ring,
        "num_bytes": pulls.num_bytes,
        "pull_ms": spread(pulls.pull_ms),
        "scattered_ms": spread(pulls.scattered_ms),
        "gb_per_s": round(rate, 2),
        "of_the_link": round(rate / slower, 3),
        "first_connect_ms": round(pulls.connect_ms[0], 2),
        "next_connect_ms": round(pulls.connect_ms[1], 2),
    }


def _move_fields(engine: str, move: Direct, slower: float) -> dict[str, Any]:
    parts = move.parts
    land_ms = [end - begin for end, begin in zip(parts["landed"], parts["read"], strict=True)]
    landing, whole = (move.num_bytes / median(values) / 1e6 for values in (land_ms, move.match_ms))
    return {
        "engine": engine,
        "num_bytes": move.num_bytes,
        "land_ms": spread(land_ms),
        "match_ms": spread(move.match_ms),
        "landing_of_the_link": round(landing / slower, 3),
        "verified_gb_per_s": round(whole, 2),
        "verified_of_the_link": round(whole / slower, 3),
        "parts_ms": {name: round(median(values), 3) for name, values in parts.items()},
    }


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in values]


if __name__ == "__main__":
    main()
