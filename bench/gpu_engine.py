"""The matrix engine on its own: pace and its parts, sizes of both scopes, numbers stay finite, equal worlds twice.

Each part is recorded with what it found, or with the error that ended it. Equal worlds are asked for three times: of
two sessions in one process, of a second process, and of a session that was installed from a copy.
"""

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.gpu_kernels import attention, kernels
from bench.gpu_twins import (
    SEED,
    captured_against_eager,
    changes_of,
    installed_copy,
    played,
    two_processes,
    two_sessions,
)
from worldmove.cli.json_text import json_text
from worldmove.engine.matrix import presets
from worldmove.engine.matrix.actions import plan
from worldmove.engine.matrix.config import FRAMES_PER_LATENT
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.session import Session
from worldmove.engine.matrix.sizes import SCOPES, is_finite

PRESETS: dict[str, Callable[[], presets.Preset]] = {
    "matrix-game-2": presets.matrix_game_2,
    "matrix-game-2-latents": lambda: presets.without_decoder(presets.matrix_game_2()),
    "matrix-tiny": presets.tiny,
    "matrix-tiny-latents": lambda: presets.without_decoder(presets.tiny()),
}
Sample = dict[str, Any]


def main() -> None:
    """Measure each part and write; as a child, play and print digests."""
    options = options_of(None)
    engine = MatrixEngine(PRESETS[options.preset]())
    if options.child:
        print(json_text(played(engine, options.twin_blocks)))
        return
    begin = time.perf_counter()
    result: Sample = {"name": "gpu_engine", "preset": options.preset, "machine": machine()}
    result["warm_up"] = tried(partial(warm, engine))
    print(json_text(result), flush=True)
    session = engine.open(SEED)
    for name, part in parts(engine, session, options).items():
        result[name] = tried(part)
        print(json_text({name: {k: v for k, v in result[name].items() if k != "samples_ms"}}), flush=True)
    result["seconds"] = time.perf_counter() - begin
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json_text(result, indent=1) + "\n", encoding="utf-8")


def warm(engine: MatrixEngine) -> Sample:
    """Warm the engine up, its graphs included."""
    engine.warm_up()
    return {}


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.gpu_engine", description=__doc__)
    options.add_argument("--preset", choices=sorted(PRESETS), default="matrix-game-2")
    options.add_argument("--out", default="gpu_engine.json")
    options.add_argument("--blocks", type=int, default=60, help="timed whole, and as many again in parts")
    options.add_argument("--finite-blocks", type=int, default=150, help="played on before numbers are looked at")
    options.add_argument("--twin-blocks", type=int, default=12)
    options.add_argument("--quick", action="store_true", help="pace and equality only, and fewer blocks")
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return options.parse_args(arguments)


def parts(engine: MatrixEngine, session: Session, options: argparse.Namespace) -> dict[str, Callable[[], Sample]]:
    """What is measured, in order."""
    quick = {
        "pace": lambda: pace(engine, session, options.blocks),
        "pace_in_parts": lambda: pace_in_parts(engine, session, options.blocks),
        "kernels": lambda: kernels(engine, session),
        "attention": attention,
        "captured_against_eager": lambda: captured_against_eager(engine, PRESETS[options.preset]()),
        "finite": lambda: finite(engine, session, 10),
        "memory": memory,
    }
    if options.quick:
        return quick
    return {
        "sizes_before": lambda: sizes(engine, engine.open(SEED)),
        "pace": lambda: pace(engine, session, options.blocks),
        "pace_in_parts": lambda: pace_in_parts(engine, session, options.blocks),
        "kernels": quick["kernels"],
        "attention": quick["attention"],
        "captured_against_eager": quick["captured_against_eager"],
        "sizes": lambda: sizes(engine, session),
        "finite": lambda: finite(engine, session, options.finite_blocks),
        "two_sessions": lambda: two_sessions(engine, options.twin_blocks),
        "installed_copy": lambda: installed_copy(engine, session),
        "two_processes": lambda: two_processes(engine, options.preset, options.twin_blocks),
        "memory": memory,
    }


def tried(part: Callable[[], Sample]) -> Sample:
    """Run one part; what ends it is its result."""
    begin = time.perf_counter()
    try:
        found = part()
    except Exception as error:  # noqa: BLE001
        found = {"error": f"{type(error).__name__}: {error}"[:2000]}
    return {**found, "took_s": round(time.perf_counter() - begin, 3)}


def pace(engine: MatrixEngine, session: Session, num_blocks: int) -> Sample:
    """Whole steps, frames on the host included."""
    samples = []
    for block in range(num_blocks):
        begin = time.perf_counter()
        engine.step(session, changes_of(block))
        samples.append(1000 * (time.perf_counter() - begin))
    period_ms = 1000 * engine.spec.period_s
    median = statistics.median(samples)
    return {
        **spread(samples),
        "period_ms": period_ms,
        "sessions_in_a_period": int(period_ms // max(samples)),
        "sessions_in_a_period_by_median": int(period_ms // median),
        "samples_ms": samples,
    }


def pace_in_parts(engine: MatrixEngine, session: Session, num_blocks: int) -> Sample:
    """The same steps, waited for between their parts. ``launch`` is the host's share of ``latents``."""
    samples: dict[str, list[float]] = {name: [] for name in ("launch", "latents", "pictures", "to_host")}
    for _ in range(num_blocks):
        for name, value in parts_of_step(engine, session).items():
            samples[name].append(1000 * value)
    return {name: spread(values) for name, values in samples.items()}


def parts_of_step(engine: MatrixEngine, session: Session) -> dict[str, float]:
    """One step, part by part, in seconds."""
    planned = plan(session.stand, (), engine.spec.frames_per_block)
    with engine.arithmetic.engaged():
        engine.quiesce(session)
        begin = time.perf_counter()
        latents = engine.generate(session, planned.controls)
        launched = time.perf_counter()
        engine.quiesce(session)
        made = time.perf_counter()
        pictures = engine.draw(session, latents)
        engine.quiesce(session)
        drawn = time.perf_counter()
        engine.arithmetic.to_host(pictures)
        shown = time.perf_counter()
    session.frame += engine.spec.frames_per_block // FRAMES_PER_LATENT
    session.stand = planned.stand
    return {"launch": launched - begin, "latents": made - begin, "pictures": drawn - made, "to_host": shown - drawn}


def spread(samples: Sequence[float]) -> Sample:
    ordered = sorted(samples)
    return {
        "num": len(ordered),
        "median_ms": round(statistics.median(ordered), 3),
        "min_ms": round(ordered[0], 3),
        "p99_ms": round(ordered[int(0.99 * (len(ordered) - 1))], 3),
        "max_ms": round(ordered[-1], 3),
    }


def sizes(engine: MatrixEngine, session: Session) -> Sample:
    """Leaves and bytes of both scopes."""
    found = {scope: engine.size(session, scope) for scope in SCOPES}
    return {
        scope: {name: getattr(size, name) for name in ("num_leaves", "live", "allocated", "resident")}
        for scope, size in found.items()
    }


def finite(engine: MatrixEngine, session: Session, num_blocks: int) -> Sample:
    """Play on, and look at every number of the state at the end, and at how large keys and values are on the way."""
    largest = []
    contrast = []
    for block in range(num_blocks):
        shown = engine.step(session, changes_of(block))
        if block % 25 == 0 or block == num_blocks - 1:
            engine.quiesce(session)
            caches = session.caches["self"]
            largest.append(max(float(cache[name].abs().max()) for cache in caches for name in ("k", "v")))
            contrast.append(round(float(shown.frames.std()), 2))
    played_blocks = session.frame * FRAMES_PER_LATENT // engine.spec.frames_per_block
    return {
        "blocks_played": played_blocks,
        "is_finite": is_finite(engine.state(session)),
        "largest_key_or_value": largest,
        "largest_feature": [float(slot.abs().max()) for slot in session.features],
        "frames_std": contrast,
    }


def memory() -> Sample:
    """What torch took of the device."""
    if not torch.cuda.is_available():
        return {}
    return {
        "allocated": torch.cuda.memory_allocated(),
        "max_allocated": torch.cuda.max_memory_allocated(),
        "max_reserved": torch.cuda.max_memory_reserved(),
    }


def machine() -> Sample:
    """Versions, and the device by name."""
    found: Sample = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        found |= {"device": properties.name, "num_sms": properties.multi_processor_count}
        found["cudnn"] = torch.backends.cudnn.version()
    return found


if __name__ == "__main__":
    main()
