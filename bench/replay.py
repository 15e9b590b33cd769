"""Replays an input log on an engine that was never moved, in a process of its own: one digest for each frame.

Reads one JSON object from standard input, writes one to standard output. The session plays from plain memory, as
the engine makes it, stepped by nothing but this loop.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worldmove.cli.json_text import json_text
from worldmove.engine.base import KeyChange
from worldmove.state.capture import capture
from worldmove.state.digest import Xxh3Digester, state_digest
from worldmove.worker.engines import build_engine
from worldmove.worker.standard_streams import set_apart, take_over


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What the log makes. ``states``: state digests by the boundary (the next block) at which they were asked for."""

    frames: list[str]
    states: Mapping[int, str]
    compute_ms: list[float]


async def replayed(
    *, engine: str, threads: int, seed: int, log: Sequence[Sequence[Sequence[Any]]], boundaries: Iterable[int]
) -> Replayed:
    """Replay a log in a fresh process. Raises RuntimeError if that fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.replay", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    asked = {"engine": engine, "threads": threads, "seed": seed, "log": log, "boundaries": sorted(boundaries)}
    answer, _ = await process.communicate(json_text(asked).encode())
    if process.returncode:
        raise RuntimeError(f"the replay ended with status {process.returncode}")
    found = json.loads(answer)
    return Replayed(
        frames=found["frames"],
        states={int(block): text for block, text in found["states"].items()},
        compute_ms=found["compute_ms"],
    )


def main() -> None:
    """Replay what standard input says."""
    asked = json.load(sys.stdin)
    take_over()
    answers = sys.stdout
    set_apart(answers)  # an engine may print
    answers.write(json_text(replay(**asked)))
    answers.flush()


def replay(*, engine: str, threads: int, seed: int, log: Sequence[Any], boundaries: Sequence[int]) -> dict[str, Any]:
    """Step every block of a log."""
    made = build_engine(engine, threads)
    made.warm_up()
    session = made.open(seed)
    frames, states, compute_ms, asked = [], {}, [], frozenset(boundaries)
    for block, changes in enumerate(log):
        if block in asked:
            states[block] = state_digest(capture(made.state(session), made.state_types), Xxh3Digester()).text
        begin = time.perf_counter()
        stepped = made.step(session, [KeyChange(number=n, key=key, down=down) for n, key, down in changes])
        compute_ms.append(round((time.perf_counter() - begin) * 1000, 3))
        frames += [hashlib.sha256(frame.tobytes()).hexdigest() for frame in stepped.frames]
    if len(log) in asked:
        states[len(log)] = state_digest(capture(made.state(session), made.state_types), Xxh3Digester()).text
    return {"frames": frames, "states": states, "compute_ms": compute_ms}


if __name__ == "__main__":
    main()
