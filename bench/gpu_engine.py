"""The matrix engine on its own: pace and its parts, sizes of both scopes, numbers stay finite, equal worlds twice.

Each part is recorded with what it found, or with the error that ended it. Equal worlds are asked for three times: of
two sessions in one process, of a second process, and of a session that was installed from a copy.
"""

import argparse
import hashlib
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

from worldmove.engine.base import KeyChange
from worldmove.engine.matrix import presets
from worldmove.engine.matrix.actions import KEYS, plan
from worldmove.engine.matrix.config import FRAMES_PER_LATENT
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.session import Session
from worldmove.engine.matrix.sizes import SCOPES, is_finite
from worldmove.state.tree import flatten

PRESETS: dict[str, Callable[[], presets.Preset]] = {
    "matrix-game-2": presets.matrix_game_2,
    "matrix-game-2-latents": lambda: presets.without_decoder(presets.matrix_game_2()),
    "matrix-tiny": presets.tiny,
    "matrix-tiny-latents": lambda: presets.without_decoder(presets.tiny()),
}
ROOT = Path(__file__).parents[1]
DIGESTED_AFTER = (1, 3, 12)
SEED = 7
Sample = dict[str, Any]


def main() -> None:
    """Measure each part and write; as a child, play and print digests."""
    options = options_of(None)
    engine = MatrixEngine(PRESETS[options.preset]())
    if options.child:
        print(json.dumps(played(engine, options.twin_blocks)))
        return
    begin = time.perf_counter()
    result: Sample = {"name": "gpu_engine", "preset": options.preset, "machine": machine()}
    result["warm_up"] = tried(partial(warm, engine))
    print(json.dumps(result), flush=True)
    session = engine.open(SEED)
    for name, part in parts(engine, session, options).items():
        result[name] = tried(part)
        print(json.dumps({name: {k: v for k, v in result[name].items() if k != "samples_ms"}}), flush=True)
    result["seconds"] = time.perf_counter() - begin
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


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
        "captured_against_eager": lambda: captured_against_eager(engine, options),
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
        "two_processes": lambda: two_processes(engine, options),
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


def changes_of(block: int) -> tuple[KeyChange, ...]:
    """A walk in which every key is pressed and let go of."""
    key = KEYS[block // 2 % len(KEYS)]
    return (KeyChange(number=block + 1, key=key, down=block % 2 == 0),)


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


def kernels(engine: MatrixEngine, session: Session) -> Sample:
    """Where one block's time on the device goes: the longest kernels, microseconds and launches."""
    if not torch.cuda.is_available():
        return {}
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        engine.step(session, ())
    rows = sorted(profiled.key_averages(), key=lambda row: -row.self_device_time_total)
    return {
        "total_us": round(sum(row.self_device_time_total for row in rows)),
        "longest": [[row.key[:90], round(row.self_device_time_total), row.count] for row in rows[:30]],
    }


def attention() -> Sample:
    """One layer's self-attention by each kernel that there is, in microseconds."""
    if not torch.cuda.is_available():
        return {}
    q = torch.randn(1, 2640, 12, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    k = torch.randn(1, 5280, 12, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    found: Sample = {}
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            work = partial(scaled_dot_product_attention, q, k, k)
            found[backend.name] = tried(lambda work=work: {"us": microseconds(work)})  # type: ignore[misc]
    return found


def microseconds(work: Callable[[], Any], times: int = 50) -> float:
    """Of one of many calls in a row."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return round(1e6 * (time.perf_counter() - begin) / times, 1)


def captured_against_eager(engine: MatrixEngine, options: argparse.Namespace) -> Sample:
    """The same world by an engine that was not warmed up, and so launches every kernel itself."""
    other = MatrixEngine(PRESETS[options.preset]())
    sessions = [(engine, engine.open(SEED)), (other, other.open(SEED))]
    equal = []
    for block in range(4):
        one, two = (each.step(session, changes_of(block)).frames for each, session in sessions)
        equal.append(bool((one == two).all()))
    digests = [digest(each, session) for each, session in sessions]
    return {"frames_equal": equal, "states_equal": digests[0] == digests[1]}


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


def two_sessions(engine: MatrixEngine, num_blocks: int) -> Sample:
    """Two sessions of one seed, played in turn."""
    one, two = engine.open(SEED), engine.open(SEED)
    equal = []
    for block in range(num_blocks):
        frames = [engine.step(session, changes_of(block)).frames for session in (one, two)]
        equal.append(bool((frames[0] == frames[1]).all()))
    digests = [digest(engine, session) for session in (one, two)]
    return {"frames_equal": equal, "states_equal": digests[0] == digests[1], "digest": digests[0]}


def installed_copy(engine: MatrixEngine, session: Session) -> Sample:
    """A copy of a session's state, installed fresh, goes on as the session does."""
    engine.quiesce(session)
    moved = engine.install(copied(engine.state(session)))
    equal = []
    for block in range(6):
        frames = [engine.step(each, changes_of(block)).frames for each in (session, moved)]
        equal.append(bool((frames[0] == frames[1]).all()))
    return {"frames_equal": equal, "states_equal": digest(engine, session) == digest(engine, moved)}


def copied(value: Any) -> Any:
    """A tree that shares nothing with the one given."""
    match value:
        case Tensor():
            return value.clone()
        case torch.Generator():
            return torch.Generator(value.device).set_state(value.get_state())
        case dict():
            return {name: copied(item) for name, item in value.items()}
        case list():
            return [copied(item) for item in value]
    return value


def two_processes(engine: MatrixEngine, options: argparse.Namespace) -> Sample:
    """The same world in a process of its own."""
    command = [sys.executable, "-m", "bench.gpu_engine", "--child", "--preset", options.preset]
    command += ["--twin-blocks", str(options.twin_blocks)]
    here = played(engine, options.twin_blocks)
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    if child.returncode:
        return {"error": child.stderr[-2000:]}
    there = json.loads(child.stdout.splitlines()[-1])
    return {
        "frames_equal": [a == b for a, b in zip(here["frames"], there["frames"], strict=True)],
        "states_equal": {name: here["states"][name] == there["states"][name] for name in here["states"]},
        "num_threads": torch.get_num_threads(),
    }


def played(engine: MatrixEngine, num_blocks: int) -> Sample:
    """Digests of a fresh world: of each block's frames, and of the whole state after some."""
    session = engine.open(SEED)
    frames, states = [], {}
    for block in range(num_blocks):
        frames.append(hashlib.sha256(engine.step(session, changes_of(block)).frames.tobytes()).hexdigest())
        if block + 1 in DIGESTED_AFTER:
            states[str(block + 1)] = digest(engine, session)
    return {"frames": frames, "states": states}


def digest(engine: MatrixEngine, session: Session) -> str:
    """SHA-256 of every leaf of the complete state, with its path."""
    engine.quiesce(session)
    flat, hashed = flatten(engine.state(session), engine.state_types), hashlib.sha256()
    for path, value in zip(flat.paths, flat.values, strict=True):
        hashed.update(path.encode())
        if isinstance(value, torch.Generator):
            value = value.get_state()
        if isinstance(value, Tensor):
            hashed.update(value.contiguous().view(torch.uint8).cpu().numpy().data)
        else:
            hashed.update(repr(value).encode())
    return hashed.hexdigest()


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
