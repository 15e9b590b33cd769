"""An exported state on its way to a fresh process: manifest, placement and the arena's bytes; and parts left out of it.

Rules of this file:

1. No format to keep: it is written and read by one audit.
2. What can be left out is each leaf that a new session has too, and as a whole whatever a new one has not: a queue
   that is empty in a new session has no first values for its items, and is left out itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from worldmove.audit.trail import within
from worldmove.engine.base import Engine
from worldmove.state.arena import Arena
from worldmove.state.capture import Capture
from worldmove.state.gathering import adopt
from worldmove.state.landing import materialise
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.structure import Container, Node, RecordNode, children, leaf_paths
from worldmove.state.tree import Flat, flatten, rebuild


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


def units(live: Node, fresh: Node, path: str = "") -> Iterator[str]:
    """Yield the paths at which a new session's value can stand for the live one, in the order of the walk."""
    if live is None or fresh is None or _shape(path, live) != _shape(path, fresh):
        yield path
        return
    for (child_path, one), (_, other) in zip(children(path, live), children(path, fresh), strict=True):
        yield from units(one, other, child_path)


def without(tree: Any, fresh: Any, unit: str, types: Mapping[str, type]) -> Any:
    """Return a tree whose part at a path is the new session's."""
    live, new = flatten(tree, types), flatten(fresh, types)
    structure = _grafted("", live.structure, new.structure, unit)
    values = {**_values(live), **{path: value for path, value in _values(new).items() if within(path, unit)}}
    return rebuild(structure, iter([values[path] for path in leaf_paths(structure)]), types)


def _values(flat: Flat) -> dict[str, Any]:
    return dict(zip(flat.paths, flat.values, strict=True))


def _shape(path: str, node: Container) -> tuple[object, ...]:
    """What must be equal for two containers to have the same places."""
    name = node.type if isinstance(node, RecordNode) else ""
    return type(node), name, [child_path for child_path, _ in children(path, node)]


def _grafted(path: str, live: Node, fresh: Node, unit: str) -> Node:
    if path == unit:
        return fresh
    if live is None or fresh is None or not within(unit, path):
        return live
    pairs = zip(children(path, live), children(path, fresh), strict=True)
    nodes = [_grafted(child_path, one, other, unit) for (child_path, one), (_, other) in pairs]
    return _with_children(live, nodes)


def _with_children(node: Container, nodes: list[Node]) -> Container:
    items = [(*old[:-1], new) if isinstance(old, tuple) else new for old, new in zip(node.items, nodes, strict=True)]
    return msgspec.structs.replace(node, items=tuple(items))
