"""An exported state on its way to a fresh process: its manifest, its placement, and the arena's bytes, in two files.

No format to keep: it is written and read by one audit.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from worldmove.engine.base import Engine
from worldmove.state.arena import Arena, adopt, materialise
from worldmove.state.capture import Capture, capture
from worldmove.state.manifest import Layout, Manifest


class _Label(msgspec.Struct, frozen=True, kw_only=True):
    manifest: bytes
    placement: tuple[int, ...]
    arena_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Where one exported state lies."""

    folder: Path
    name: str

    def write(self, state: Capture) -> None:
        """Lay a captured state into an arena, as a freeze does, and write the arena down."""
        arena = Arena(Layout.of(state.manifest).arena_bytes, "worldmove-audit")
        arena.poison()
        label = _Label(manifest=state.manifest.to_bytes(), placement=adopt(state, arena), arena_bytes=arena.size)
        self._bytes.write_bytes(arena.buffer)
        self._label.write_bytes(msgspec.msgpack.encode(label))
        arena.close()

    def tree(self, engine: Engine[Any]) -> Any:
        """Make the state's tree again, over an arena of this process."""
        label = msgspec.msgpack.decode(self._label.read_bytes(), type=_Label)
        arena = Arena(label.arena_bytes, "worldmove-audit")
        np.copyto(arena.memory, np.fromfile(self._bytes, dtype=np.uint8))
        return materialise(Manifest.from_bytes(label.manifest), label.placement, arena, engine.state_types)

    @property
    def _label(self) -> Path:
        return self.folder / f"{self.name}.label"

    @property
    def _bytes(self) -> Path:
        return self.folder / f"{self.name}.bytes"


def captured(engine: Engine[Any], session: Any) -> Capture:
    """Resolve a session's state at a boundary. Raises StateRefused."""
    engine.quiesce(session)
    return capture(engine.state(session), engine.state_types)
