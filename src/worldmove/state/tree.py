"""Nested containers: taken apart into leaves, and put together again.

Containers: dict (keys str, int, bool; order kept), list, tuple, and the dataclasses and named tuples that the
caller registers. Types are matched exactly; what would not come back the same is refused by path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from worldmove.errors import StateRefused
from worldmove.limits import MAX_NODES
from worldmove.state.leaf import encode_scalar
from worldmove.state.record import field_names, is_record, make, read_fields, type_fault
from worldmove.state.structure import (
    MAX_DEPTH,
    MAX_KEY_BYTES,
    MAX_PATH_CHARACTERS,
    DictNode,
    ListNode,
    Node,
    RecordNode,
    TupleNode,
    children,
    dict_keys,
    field_path,
    item_path,
    key_path,
)

KEY_TYPES = (str, int, bool)

NO_TYPES: Mapping[str, type] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class Flat:
    """A tree taken apart: its structure, and its leaves with their paths in the order of the walk."""

    structure: Node = None
    paths: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    num_nodes: int = 0


def flatten(tree: Any, types: Mapping[str, type] = NO_TYPES) -> Flat:
    """Take a tree apart. Raises StateRefused, by path, for a container that would not come back the same."""
    flat = Flat()
    walk = _Walk(names={kind: name for name, kind in types.items()}, flat=flat, seen={})
    flat.structure = walk.node("", tree, 0)
    return flat


def rebuild(structure: Node, leaves: Iterator[Any], types: Mapping[str, type] = NO_TYPES) -> Any:
    """Put a tree together again. Raises StateRefused for a type that is not registered, or another by its name."""
    return _build("", structure, leaves, types)


def is_container(kind: type) -> bool:
    """Say whether objects of exactly this type are taken apart."""
    return _role(kind) is not _Role.LEAF


class _Role(Enum):
    LEAF = 0
    DICT = 1
    LIST = 2
    TUPLE = 3
    RECORD = 4


_PLAIN: Mapping[type, _Role] = {dict: _Role.DICT, list: _Role.LIST, tuple: _Role.TUPLE}


@lru_cache(maxsize=256)
def _role(kind: type) -> _Role:
    return _PLAIN.get(kind) or (_Role.RECORD if is_record(kind) else _Role.LEAF)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    names: Mapping[type, str]
    flat: Flat
    seen: dict[int, str]

    def node(self, path: str, value: Any, depth: int) -> Node:
        self._count(path, depth)
        role = _role(type(value))  # type: ignore[arg-type]
        if role is _Role.LEAF:
            self.flat.paths.append(path)
            self.flat.values.append(value)
            return None
        if role in (_Role.LIST, _Role.TUPLE):
            return self._items(path, value, depth, role)
        if role is _Role.DICT:
            self._once(path, value)
            return DictNode(tuple([self._entry(path, key, item, depth + 1) for key, item in value.items()]))
        return self._record(path, value, depth)

    def _count(self, path: str, depth: int) -> None:
        self.flat.num_nodes += 1
        if depth > MAX_DEPTH:
            raise StateRefused(path, f"it lies in more than {MAX_DEPTH} containers")
        if len(path) > MAX_PATH_CHARACTERS:
            raise StateRefused(path[:80] + "...", f"its path has more than {MAX_PATH_CHARACTERS} characters")
        if self.flat.num_nodes > MAX_NODES:
            raise StateRefused(path, f"a state may have {MAX_NODES} leaves and containers")

    def _items(self, path: str, value: Sequence[Any], depth: int, role: _Role) -> Node:
        if role is _Role.LIST:
            self._once(path, value)
        nodes = tuple([self.node(item_path(path, i), item, depth + 1) for i, item in enumerate(value)])
        return ListNode(nodes) if role is _Role.LIST else TupleNode(nodes)

    def _once(self, path: str, value: Any) -> None:
        if id(value) in self.seen:
            raise StateRefused(path, f"the same {type(value).__name__} stands at {self.seen[id(value)] or 'the root'}")
        self.seen[id(value)] = path

    def _entry(self, path: str, key: Any, item: Any, depth: int) -> tuple[str, bytes, Node]:
        if type(key) not in KEY_TYPES:
            raise StateRefused(path, f"a key of it is a {type(key).__name__}, not a str, int or bool")
        scalar = encode_scalar(key)
        if len(scalar.value) > MAX_KEY_BYTES:
            raise StateRefused(path, f"a key of it has {len(scalar.value)} bytes, more than {MAX_KEY_BYTES}")
        return scalar.kind, scalar.value, self.node(key_path(path, key), item, depth)

    def _record(self, path: str, value: Any, depth: int) -> Node:
        kind = type(value)
        if kind not in self.names:
            raise StateRefused(path, f"{kind.__qualname__} is not registered among the engine's state types")
        if not issubclass(kind, tuple):
            self._once(path, value)
        held = read_fields(path, value)
        items = [(name, self.node(field_path(path, name), item, depth + 1)) for name, item in held]
        return RecordNode(self.names[kind], tuple(items))


def _build(path: str, node: Node, leaves: Iterator[Any], types: Mapping[str, type]) -> Any:
    if node is None:
        return next(leaves)
    if isinstance(node, RecordNode):
        return _build_record(path, node, leaves, types)
    values = [_build(child_path, child, leaves, types) for child_path, child in children(path, node)]
    if isinstance(node, DictNode):
        return dict(zip(dict_keys(node), values, strict=True))
    return values if isinstance(node, ListNode) else tuple(values)


def _build_record(path: str, node: RecordNode, leaves: Iterator[Any], types: Mapping[str, type]) -> Any:
    kind = types.get(node.type)
    if kind is None or not is_record(kind):
        raise StateRefused(path, f"{node.type} is not registered here")
    fault = type_fault(kind)
    if fault is not None:
        raise StateRefused(path, fault)
    names = tuple(name for name, _ in node.items)
    if names != field_names(kind):
        raise StateRefused(path, f"{node.type} has the fields {names} there and {field_names(kind)} here")
    values = [_build(child_path, child, leaves, types) for child_path, child in children(path, node)]
    return make(kind, values)
