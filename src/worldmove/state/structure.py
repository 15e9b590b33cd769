"""The containers of a state as a manifest has them, and the paths of the leaves in them.

A path reads like Python: ``caches[3].k``; ``['odd key']`` where a key is no identifier. Within one container no
two children have equal texts, so within one state no two leaves have equal paths.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from worldmove.errors import ManifestError
from worldmove.limits import MAX_NODES
from worldmove.state.leaf import ScalarLeaf, decode_scalar

MAX_DEPTH = 64
MAX_PATH_CHARACTERS = 1024
MAX_ALL_CHARACTERS = 1 << 24
"""Of a state's paths together: a file of 2 MB said 131,000 of a thousand, and took 400 MB to be read."""
MAX_KEY_BYTES = 512


class _Node(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A container in a manifest. A leaf's place in it is None; the leaves follow in the order of the walk."""


class ListNode(_Node, frozen=True, tag_field="node", tag="list"):
    """A list."""

    items: tuple["Node", ...]


class TupleNode(_Node, frozen=True, tag_field="node", tag="tuple"):
    """A plain tuple."""

    items: tuple["Node", ...]


class DictNode(_Node, frozen=True, tag_field="node", tag="dict"):
    """A dict: [key kind, key bytes, value] in order of insertion."""

    items: tuple[tuple[str, bytes, "Node"], ...]


class RecordNode(_Node, frozen=True, tag_field="node", tag="record"):
    """A registered dataclass or named tuple: its name, and [field, value] in order of declaration."""

    type: str
    items: tuple[tuple[str, "Node"], ...]


Container = ListNode | TupleNode | DictNode | RecordNode
Node = Container | None


def leaf_paths(structure: Node) -> tuple[str, ...]:
    """Return the leaves' paths in the order of the walk. Raises ManifestError beyond a limit or at a bad key."""
    found: list[str] = []
    length = 0
    for number, (path, node) in enumerate(_walk("", structure, 0)):
        if number >= MAX_NODES:
            raise ManifestError(f"there are more than {MAX_NODES} leaves and containers")
        if node is None:
            found.append(path)
            length += len(path)
            if length > MAX_ALL_CHARACTERS:
                check_length(found)
    return tuple(found)


def check_length(paths: Iterable[str]) -> None:
    """Raise ManifestError where the paths are longer, all together, than they may be."""
    length = sum(map(len, paths))
    if length > MAX_ALL_CHARACTERS:
        raise ManifestError(f"the paths of its leaves have more than {MAX_ALL_CHARACTERS:,} characters together")


def children(path: str, node: Container) -> Iterable[tuple[str, Node]]:
    """Return path and node of each child, a path at a time: they may be long.

    Raises ManifestError where two would have one path.
    """
    if isinstance(node, DictNode):
        keys = dict_keys(node)
        return ((key_path(path, key), item[2]) for key, item in zip(keys, node.items, strict=True))
    if isinstance(node, RecordNode):
        names = [name for name, _ in node.items]
        if len(frozenset(names)) != len(names) or not all(name.isidentifier() for name in names):
            raise ManifestError(f"{path or 'the root'} has fields that no type could have")
        return ((field_path(path, name), child) for name, child in node.items)
    return ((item_path(path, index), child) for index, child in enumerate(node.items))


def dict_keys(node: DictNode) -> tuple[Any, ...]:
    """Return a dict's keys in order. Raises ManifestError at a key that is not canonical or stands twice."""
    if any(kind not in ("str", "int", "bool") or len(data) > MAX_KEY_BYTES for kind, data, _ in node.items):
        raise ManifestError("a dict's key is neither a str, an int nor a bool of up to 512 bytes")
    keys = tuple(decode_scalar(ScalarLeaf(kind, data)) for kind, data, _ in node.items)
    if len(frozenset(keys)) != len(keys):
        raise ManifestError("a dict's key stands twice")
    return keys


def field_path(path: str, name: str) -> str:
    """Return the path of a field, or of a key that is an identifier."""
    return f"{path}.{name}" if path else name


def key_path(path: str, key: Any) -> str:
    """Return the path of a dict's value."""
    return field_path(path, key) if type(key) is str and key.isidentifier() else f"{path}[{key!r}]"


def item_path(path: str, index: int) -> str:
    """Return the path of an item of a list or tuple."""
    return f"{path}[{index}]"


def _walk(path: str, node: Node, depth: int) -> Iterator[tuple[str, Node]]:
    if depth > MAX_DEPTH or len(path) > MAX_PATH_CHARACTERS:
        raise ManifestError(f"a leaf or container lies deeper than {MAX_DEPTH} or under too long a path")
    yield path, node
    if node is not None:
        for child_path, child in children(path, node):
            yield from _walk(child_path, child, depth + 1)
