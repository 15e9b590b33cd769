"""Nested containers: flattened into leaves by path, and rebuilt.

Containers: dict (keys str, int, bool; order kept), list, tuple, and the dataclasses and named tuples that the
caller registers. A path reads like Python: ``caches[3].k``; ``['odd key']`` where a key is no identifier.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import msgspec

from worldmove.errors import ManifestError, StateRefused
from worldmove.state.leaf import ScalarLeaf, decode_scalar, encode_scalar

MAX_DEPTH = 64
MAX_LEAVES = 1 << 16
MAX_PATH_CHARACTERS = 1024
KEY_TYPES = (str, int, bool)

NO_TYPES: Mapping[str, type] = MappingProxyType({})


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


Node = ListNode | TupleNode | DictNode | RecordNode | None


@dataclass(slots=True, kw_only=True)
class Flat:
    """A tree taken apart: its structure, and its leaves with their paths in the order of the walk."""

    structure: Node = None
    paths: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def flatten(tree: Any, types: Mapping[str, type] = NO_TYPES) -> Flat:
    """Take a tree apart. Raises StateRefused, by path, for a container that would not come back the same."""
    flat = Flat()
    walk = _Walk(names={kind: name for name, kind in types.items()}, flat=flat, seen={})
    flat.structure = walk.node("", tree, 0)
    return flat


def leaf_paths(structure: Node) -> tuple[str, ...]:
    """Return the leaves' paths in the order of the walk. Raises ManifestError beyond a limit or at a bad key."""
    return tuple(_paths("", structure, 0))


def rebuild(structure: Node, leaves: Iterator[Any], types: Mapping[str, type] = NO_TYPES) -> Any:
    """Put a tree together again. Raises StateRefused for a type that is not registered, or another by its name."""
    return _build("", structure, leaves, types)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    names: Mapping[type, str]
    flat: Flat
    seen: dict[int, str]

    def node(self, path: str, value: Any, depth: int) -> Node:
        if depth > MAX_DEPTH or len(path) > MAX_PATH_CHARACTERS:
            raise StateRefused(path[:80] + "...", f"it lies deeper than {MAX_DEPTH} or under too long a path")
        kind = type(value)
        if issubclass(kind, Enum):
            self._leaf(path, value)
            return None
        if kind in (dict, list) or is_dataclass(kind):
            self._once(path, value)
        if kind is dict:
            return DictNode(tuple(self._entry(path, key, item, depth) for key, item in value.items()))
        if kind in (list, tuple):
            items = tuple(self.node(f"{path}[{i}]", item, depth + 1) for i, item in enumerate(value))
            return ListNode(items) if kind is list else TupleNode(items)
        if is_dataclass(kind) or _is_named_tuple(kind):
            return self._record(path, value, depth)
        self._leaf(path, value)
        return None

    def _leaf(self, path: str, value: Any) -> None:
        if len(self.flat.values) >= MAX_LEAVES:
            raise StateRefused(path, f"a state may have {MAX_LEAVES} leaves")
        self.flat.paths.append(path)
        self.flat.values.append(value)

    def _once(self, path: str, value: Any) -> None:
        if id(value) in self.seen:
            raise StateRefused(path, f"the same {type(value).__name__} stands at {self.seen[id(value)] or 'the root'}")
        self.seen[id(value)] = path

    def _entry(self, path: str, key: Any, item: Any, depth: int) -> tuple[str, bytes, Node]:
        if type(key) not in KEY_TYPES:
            raise StateRefused(path, f"its key {key!r:.40} is a {type(key).__name__}, not a str, int or bool")
        scalar = encode_scalar(key)
        return scalar.kind, scalar.value, self.node(_key_path(path, key), item, depth + 1)

    def _record(self, path: str, value: Any, depth: int) -> Node:
        kind = type(value)
        if kind not in self.names:
            raise StateRefused(path, f"{kind.__qualname__} is not registered among the engine's state types")
        names = field_names(kind)
        missing = [name for name in names if not hasattr(value, name)]
        extra = sorted(_attributes(value) - set(names))
        if missing or extra:
            raise StateRefused(path, f"its attributes are not its fields: {', '.join(missing + extra)}")
        items = ((name, self.node(_field_path(path, name), getattr(value, name), depth + 1)) for name in names)
        return RecordNode(self.names[kind], tuple(items))


def field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a registered dataclass or named tuple, in order of declaration."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else tuple(kind._fields)  # type: ignore[attr-defined]


def _attributes(value: object) -> set[str]:
    slots = (getattr(base, "__slots__", ()) for base in type(value).__mro__)
    named = {name for names in slots for name in ((names,) if isinstance(names, str) else names)}
    held = {name for name in named - {"__dict__", "__weakref__"} if hasattr(value, name)}
    return held | set(getattr(value, "__dict__", ()))


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not issubclass(kind, Enum)


def _field_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _key_path(path: str, key: Any) -> str:
    return _field_path(path, key) if type(key) is str and key.isidentifier() else f"{path}[{key!r}]"


def _paths(path: str, node: Node, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH or len(path) > MAX_PATH_CHARACTERS:
        raise ManifestError(f"a container lies deeper than {MAX_DEPTH} or under too long a path")
    if node is None:
        yield path
        return
    for child_path, child in _children(path, node):
        yield from _paths(child_path, child, depth + 1)


def _children(path: str, node: ListNode | TupleNode | DictNode | RecordNode) -> Sequence[tuple[str, Node]]:
    if isinstance(node, DictNode):
        keys = dict_keys(node)
        return [(_key_path(path, key), item[2]) for key, item in zip(keys, node.items, strict=True)]
    if isinstance(node, RecordNode):
        if len({name for name, _ in node.items}) != len(node.items):
            raise ManifestError(f"a field of {path or 'the root'} stands twice")
        return [(_field_path(path, name), child) for name, child in node.items]
    return [(f"{path}[{i}]", child) for i, child in enumerate(node.items)]


def dict_keys(node: DictNode) -> tuple[Any, ...]:
    """Return a dict's keys in order. Raises ManifestError at a key that is not canonical or stands twice."""
    if any(kind not in ("str", "int", "bool") for kind, _, _ in node.items):
        raise ManifestError("a dict's key is neither str, int nor bool")
    keys = tuple(decode_scalar(ScalarLeaf(kind, data)) for kind, data, _ in node.items)
    if len(set(keys)) != len(keys):
        raise ManifestError("a dict's key stands twice")
    return keys


def _build(path: str, node: Node, leaves: Iterator[Any], types: Mapping[str, type]) -> Any:
    if node is None:
        return next(leaves)
    if isinstance(node, RecordNode):
        return _build_record(path, node, leaves, types)
    values = [_build(child_path, child, leaves, types) for child_path, child in _children(path, node)]
    if isinstance(node, DictNode):
        return dict(zip(dict_keys(node), values, strict=True))
    return values if isinstance(node, ListNode) else tuple(values)


def _build_record(path: str, node: RecordNode, leaves: Iterator[Any], types: Mapping[str, type]) -> Any:
    kind = types.get(node.type)
    if kind is None or not (is_dataclass(kind) or _is_named_tuple(kind)):
        raise StateRefused(path, f"{node.type} is not registered here")
    names = tuple(name for name, _ in node.items)
    if names != field_names(kind):
        raise StateRefused(path, f"{node.type} has the fields {names} there and {field_names(kind)} here")
    values = [_build(child_path, child, leaves, types) for child_path, child in _children(path, node)]
    if issubclass(kind, tuple):
        return kind._make(values)  # type: ignore[attr-defined]
    # Neither __init__ nor __post_init__ runs: they might derive, convert or draw, and the fields are known.
    made = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made
