"""What both ends of a move without a server have: an engine, a slot, a path, the line to the other end, a clock."""

import gc
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from worldmove.cli.benches.path_here import PathHere
from worldmove.engine.base import Engine
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_digests import prepare_key
from worldmove.state.digest import Pass
from worldmove.state.kits import kit_of
from worldmove.state.memory import MemoryKit
from worldmove.state.proof import MoveProof, prove
from worldmove.worker.engines import build_engine
from worldmove.worker.process import DEVICE_SWITCH_INTERVAL_S, GC_THRESHOLDS, SWITCH_INTERVAL_S
from worldmove.worker.states import DIGESTER
from worldmove.worker.warm_up import warm_up

NEAR = "near"
"""The freeze is near: each end goes once through what it will do, the other one says when it has."""
STILL = "still"
"""What lies in the source's slot is written no more: it may be pulled, before it is known what of the state lies
elsewhere. That is brought into the slot after it, told at the boundary, and pulled then.
"""


class Asked(NamedTuple):
    """Which engine's session, how often, and by which path; None for the fastest that a worker has."""

    engine: str
    threads: int
    repeats: int
    path: str | None


@dataclass(slots=True, kw_only=True)
class Clock:
    """Instants by name, one a move."""

    instants: dict[str, list[float]] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        """Note that something has just ended."""
        self.instants.setdefault(name, []).append(time.perf_counter())


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One process: an engine, a slot for a session of it, its end of the path, and the line to the other end."""

    engine: Engine[Any]
    arena: AnyArena
    path: PathHere
    peer: Connection

    def prepare_key(self, nonce: bytes, layout_digest: bytes) -> None:
        """Have what a device's digests need of a move."""
        if isinstance(self.arena, DeviceArena):
            prepare_key(self.arena.kit, nonce, layout_digest)


@contextmanager
def serving(asked: Asked, peer: Connection) -> Iterator[End]:
    """Build and warm an engine, make a slot for a session of it, and serve a path, while inside."""
    engine = build_engine(asked.engine, asked.threads)
    warm, kit = warm_up(engine, time.perf_counter), kit_of(engine.spec.device)
    arena = new_arena(warm.arena_bytes, "worldmove-bench", kit)
    with (
        TemporaryDirectory(prefix="worldmove-bench-") as folder,
        PathHere(Path(folder) / "path", kit, random.Random(1), asked.path) as path,
    ):
        _settle(kit)
        yield End(engine=engine, arena=arena, path=path, peer=peer)


def _settle(kit: MemoryKit | None) -> None:
    """Let collections and other threads interrupt as little, or as soon, as in a worker's process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S if kit is None else DEVICE_SWITCH_INTERVAL_S)


def proof_of(
    captured: Capture, nonce: bytes, layout_digest: bytes, number: int, begun: Pass | None = None
) -> MoveProof:
    """Return an end's proof of the move of a number, by a pass that may have begun."""
    return prove(
        captured,
        DIGESTER,
        attempt="bench",
        epoch=1,
        boundary=number + 1,
        nonce=nonce,
        layout_digest=layout_digest,
        begun=begun,
    )
