"""What one object shows of itself: its own value, as text without addresses, and the objects that it holds.

Rules of these files (``look``, ``look_values``, ``look_code``):

1. Nothing of the object's own runs but the ``repr`` of what is written in C, and nothing is changed: attributes
   are read where they lie.
2. A value is the same text in every process: no address, no order of a set.
3. What is foreign and static (modules, classes of libraries) is a name.
"""

import collections
import gc
from collections.abc import Iterable, Mapping
from operator import itemgetter
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import torch

from worldmove.audit.look_code import Own, look_at_code
from worldmove.audit.look_values import SCALARS, look_at_value
from worldmove.audit.looks import Look, Part, attributes, digest, has_attributes, text_of, without_addresses
from worldmove.state.structure import field_path, item_path, key_path

MANY = 64
"""From this many scalars on, a container of nothing else is one value: its digest."""
FOLDED = ("_modules", "_parameters", "_buffers")
"""Dictionaries of a torch module whose entries are read as its attributes."""


def look_at(value: Any, path: str, own: Own) -> Look:
    """Look at one object that a path leads to. ``own``: the modules whose classes and variables are walked."""
    return (
        look_at_value(value, path)
        or _container(value, path)
        or look_at_code(value, path, own)
        or _instance(value, path)
    )


def _container(value: Any, path: str) -> Look | None:
    match value:
        case dict() | MappingProxyType():
            return _mapping(value, path)
        case list() | tuple() | collections.deque():
            return _sequence(value, path)
        case set() | frozenset():
            return _set(value, path)
    return None


def _mapping(value: Mapping[Any, Any], path: str) -> Look:
    if _is_plain_many([*value.keys(), *value.values()]):
        return _many(value, repr(dict(value)))
    labels = _distinct(without_addresses(repr(key)) for key in value)
    pairs = zip(labels, list(value.items()), strict=True)
    parts = [Part(f"[{label}]", _key_path(path, key), item) for label, (key, item) in pairs]
    return _holding(value, path, parts)


def _key_path(path: str, key: Any) -> str:
    return key_path(path, key) if type(key) in (str, int, bool) else f"{path}[{text_of(key)}]"


def _sequence(value: Any, path: str) -> Look:
    if _is_plain_many(value):
        return _many(value, repr(list(value)))
    names = getattr(type(value), "_fields", ()) if isinstance(value, tuple) else ()
    paths = [field_path(path, name) for name in names] or [item_path(path, i) for i in range(len(value))]
    parts = [Part(f"[{i}]", name, item) for i, (name, item) in enumerate(zip(paths, list(value), strict=True))]
    kept = [Part("maxlen", f"{path}.maxlen", value.maxlen)] if isinstance(value, collections.deque) else []
    return _holding(value, path, [*parts, *kept], has_identity=not isinstance(value, tuple))


def _set(value: Iterable[Any], path: str) -> Look:
    """Its items by their texts, since their order differs between processes."""
    texts = ((f"{type(item).__name__} {without_addresses(repr(item))}", item) for item in value)
    items = sorted(texts, key=itemgetter(0))
    labels = _distinct(label for label, _ in items)
    parts = [Part(label, f"{path}{{{text_of(item)}}}", item) for label, (_, item) in zip(labels, items, strict=True)]
    return _holding(value, path, parts)


def _distinct(labels: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def _is_plain_many(items: Any) -> bool:
    return len(items) > MANY and all(type(item) in SCALARS or item is None for item in items)


def _many(value: Any, text: str) -> Look:
    return Look(
        kind=type(value).__name__,
        value=f"{len(value)} items #{digest(text.encode('utf-8', 'surrogatepass'))}",
        num_bytes=8 * len(value),
        whole=True,
    )


def _holding(value: Any, path: str, parts: list[Part], *, has_identity: bool = True) -> Look:
    """A container, compared as one thing where it has other items."""
    kind, size = type(value).__qualname__, 8 * len(value)
    return Look(kind=kind, parts=[*parts, *_beside(value, path)], whole=True, num_bytes=size, has_identity=has_identity)


def _beside(value: Any, path: str) -> list[Part]:
    """What a subclass of a container holds beside its items."""
    plain = (dict, list, tuple, set, frozenset, collections.deque, MappingProxyType)
    return [] if type(value) in plain else attributes(value, path)


def _instance(value: Any, path: str) -> Look:
    parts = attributes(value, path)
    kind = type(value).__qualname__
    if isinstance(value, torch.nn.Module):
        parts = [Part(p.label, path, p.value) if p.label[1:] in FOLDED else p for p in parts]
    if isinstance(value, BaseException):
        parts.append(Part(".args", f"{path}.args", value.args))
    return Look(kind=kind, parts=parts) if parts or has_attributes(value) else _written_in_c(value, path, kind)


def _written_in_c(value: Any, path: str, kind: str) -> Look:
    """All that can be known: what it says of itself, and which Python objects the collector knows it to hold."""
    teller: Any = type(value).__repr__
    says = teller is not object.__repr__ and not isinstance(teller, FunctionType)
    held = (item for item in gc.get_referents(value) if not isinstance(item, type | ModuleType))
    parts = [Part(f"held {i}", path, item) for i, item in enumerate(held)]
    return Look(kind=kind, value=text_of(value) if says else "", parts=parts)
