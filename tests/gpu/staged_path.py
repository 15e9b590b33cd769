"""The path through pinned host memory, as both processes of a trial make it."""

import os
from pathlib import Path

from worldmove.state.memory import MemoryKit
from worldmove.transport.ring import RingShape
from worldmove.transport.staged import Staged
from worldmove.transport.staged_serving import StagedConfig
from worldmove.worker.threads import OneThread

SHAPE = RingShape(4 << 20, 4)
"""Small against what is pulled: each buffer is used many times."""


def path_at(socket: str | Path, kit: MemoryKit) -> Staged:
    config = StagedConfig(path=Path(socket), shape=SHAPE, answer_s=30.0)
    return Staged(config=config, kit=kit, new_thread=OneThread, tokens=lambda: os.urandom(32))
