"""Registered dataclasses and named tuples: what an object of one holds, and how one is made again.

What an object holds is read where it lies, in its dictionary and in its slots, and put back there: a default of
the class, a property or a constructor plays no part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, MappingProxyType, MemberDescriptorType
from typing import Any

from worldmove.errors import StateRefused


def is_record(kind: type) -> bool:
    """Say whether a type is a dataclass or a named tuple (an enum with fields is a leaf)."""
    return (is_dataclass(kind) or _is_named_tuple(kind)) and not issubclass(kind, Enum)


def field_names(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass or named tuple, in order of declaration."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else tuple(kind._fields)  # type: ignore[attr-defined]


@lru_cache(maxsize=256)
def type_fault(kind: type) -> str | None:
    """Say why objects of a dataclass or named tuple could not be made again of their fields, or None."""
    root = tuple if _is_named_tuple(kind) else object
    for base in kind.__mro__:
        new = base.__dict__.get("__new__")
        # A type with a constructor in C keeps content where neither a dictionary nor a slot shows it.
        if base not in (root, object) and isinstance(new, BuiltinFunctionType) and new.__self__ is base:
            return f"{kind.__qualname__} derives from {base.__name__}, whose content is in no field"
    if root is object and not kind.__dictoffset__ and not set(field_names(kind)) <= {name for name, _ in _slots(kind)}:
        return f"{kind.__qualname__} has no place for some of its fields"
    return None


def read_fields(path: str, value: Any) -> list[tuple[str, Any]]:
    """Return the fields that an object holds. Raises StateRefused if it holds anything else, or not all of them."""
    kind = type(value)
    fault = type_fault(kind)  # type: ignore[arg-type]
    if fault is not None:
        raise StateRefused(path, fault)
    names = field_names(kind)
    held = dict(_held(value))
    if not issubclass(kind, tuple):
        _expect(path, names, tuple(held))
        return [(name, held[name]) for name in names]
    _expect(path, (), tuple(held))
    items = tuple(tuple.__iter__(value))
    if len(items) != len(names):
        raise StateRefused(path, f"it has {len(items)} items, and its type has {len(names)} fields")
    return list(zip(names, items, strict=True))


def make(kind: type, values: Sequence[Any]) -> Any:
    """Return an object of a type without fault that holds these values in its fields. No constructor of it runs."""
    if issubclass(kind, tuple):
        return tuple.__new__(kind, values)
    made = object.__new__(kind)
    slots = dict(_slots(kind))  # type: ignore[arg-type]
    for name, value in zip(field_names(kind), values, strict=True):
        if name in slots:
            slots[name].__set__(made, value)
        else:
            _dictionary(made)[name] = value
    return made


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not is_dataclass(kind)


def _expect(path: str, names: Sequence[str], held: Sequence[str]) -> None:
    strange = [name for name in names if name not in held] + sorted(name for name in held if name not in names)
    if strange:
        raise StateRefused(path, f"its attributes are not its fields: {', '.join(strange)}")


def _held(value: object) -> Iterator[tuple[str, Any]]:
    """Yield all that an object holds of its own; what a lookup by name would not reach, under a longer name."""
    slots = dict(_slots(type(value)))  # type: ignore[arg-type]
    for name, slot in slots.items():
        try:
            yield name, slot.__get__(value, type(value))
        except AttributeError:
            continue
    for name, item in _dictionary(value).items():
        yield (f"__dict__.{name}" if name in slots else name), item


@lru_cache(maxsize=256)
def _slots(kind: type) -> tuple[tuple[str, MemberDescriptorType], ...]:
    """Return the slots of all bases by the names they lie under, which are mangled where they are private."""
    found: dict[str, MemberDescriptorType] = {}
    above: set[str] = set()
    for base in kind.__mro__:
        for name, entry in base.__dict__.items():
            if isinstance(entry, MemberDescriptorType):
                found[f"{base.__qualname__}.{name}" if name in above else name] = entry
        above |= base.__dict__.keys()
    return tuple(found.items())


def _dictionary(value: object) -> Any:
    """Return an object's own dictionary, whatever its type answers when it is asked for attributes."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return MappingProxyType({})
