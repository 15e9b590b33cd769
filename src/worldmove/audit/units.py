"""What can be dropped from a state: each leaf that a new session has too, and as a whole whatever a new one has not.

A queue that is empty in a new session has no first values for its items: the whole queue is dropped then.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from worldmove.audit.trail import within
from worldmove.state.structure import Container, Node, RecordNode, children, leaf_paths
from worldmove.state.tree import Flat, flatten, rebuild


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
