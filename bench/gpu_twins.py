"""Equal worlds, asked for in every way that one machine has: for ``bench.gpu_engine``."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from worldmove.engine.base import KeyChange
from worldmove.engine.matrix.actions import KEYS
from worldmove.engine.matrix.engine import MatrixEngine
from worldmove.engine.matrix.presets import Preset
from worldmove.engine.matrix.session import Session
from worldmove.state.tree import flatten

ROOT = Path(__file__).parents[1]
DIGESTED_AFTER = (1, 3, 12)
SEED = 7
Sample = dict[str, Any]


def captured_against_eager(engine: MatrixEngine, preset: Preset) -> Sample:
    """The same world by an engine that was not warmed up, and so launches every kernel itself."""
    other = MatrixEngine(preset)
    sessions = [(engine, engine.open(SEED)), (other, other.open(SEED))]
    equal = []
    for block in range(4):
        one, two = (each.step(session, changes_of(block)).frames for each, session in sessions)
        equal.append(bool((one == two).all()))
    digests = [digest(each, session) for each, session in sessions]
    return {"frames_equal": equal, "states_equal": digests[0] == digests[1]}


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


def two_processes(engine: MatrixEngine, preset: str, num_blocks: int) -> Sample:
    """The same world in a process of its own."""
    command = [sys.executable, "-m", "bench.gpu_engine", "--child", "--preset", preset]
    command += ["--twin-blocks", str(num_blocks)]
    here = played(engine, num_blocks)
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


def changes_of(block: int) -> tuple[KeyChange, ...]:
    """A walk in which every key is pressed and let go of."""
    key = KEYS[block // 2 % len(KEYS)]
    return (KeyChange(number=block + 1, key=key, down=block % 2 == 0),)
