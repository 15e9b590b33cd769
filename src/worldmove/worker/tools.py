"""What every copy of a worker shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine, EngineSpec
from worldmove.transport.base import Blocking
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.messages import ToServer
from worldmove.worker.meter import Meter
from worldmove.worker.on_their_way import OnTheirWay
from worldmove.worker.pictures import Taking, taken
from worldmove.worker.progress import Progress
from worldmove.worker.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every copy of a worker shares."""

    engine: Engine[Any]
    spec: EngineSpec
    """The engine's, asked for once: it is foreign code, and the event loop calls none."""
    types: Mapping[str, type]
    """Of its states' trees, likewise: whoever reads a file builds them beside it."""
    followed: tuple[str, ...]
    """What of a session could be stepped elsewhere by itself, likewise (``states.followed_paths``)."""
    turns: Turns
    courtesy: Courtesy
    copying: Blocking
    """The thread that copies and hashes, beside the engine's. Moves wait for it: it waits for no file."""
    filing: Blocking
    """The thread that reads and writes files."""
    send: Callable[[ToServer], None]
    clock: Callable[[], float]
    """Seconds, monotonic, for block times."""
    meter: Meter
    check_blocks: int
    on_their_way: OnTheirWay
    progress: Progress
    taking: Taking = taken
    """How a block's pictures are copied and hashed."""
    num_lines_dropped: Callable[[], int] = lambda: 0
    """How many lines of this process's log were dropped so far."""
