"""What looking at one object yields, and the means that all kinds of looking share."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MemberDescriptorType
from typing import Any

import xxhash

from worldmove.state.structure import field_path

SHOWN_CHARACTERS = 48
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One object that another holds: what it is called there, and the path that names it."""

    label: str
    path: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One object. ``value`` is its own, as text; ``whole``: it is compared as one thing where its labels differ."""

    kind: str
    value: str = ""
    num_bytes: int = 0
    parts: Sequence[Part] = ()
    whole: bool = False
    has_identity: bool = True
    """Whether a second way to it leads to the same thing; a number is only ever equal to another."""


def text_of(value: object) -> str:
    """Return an object's repr without addresses, short; a long one is cut and told by its digest."""
    return short(without_addresses(repr(value)))


def without_addresses(text: str) -> str:
    """Return a text that is the same in every process."""
    return _ADDRESS.sub("", text)


def short(text: str) -> str:
    """Cut a long text; its digest says what was cut."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[: SHOWN_CHARACTERS - 16]}...#{digest(text.encode('utf-8', 'surrogatepass'))}"


def digest(*data: bytes | memoryview) -> str:
    """Return twelve characters that depend on every byte."""
    total = xxhash.xxh3_128()
    for part in data:
        total.update(part)
    return total.hexdigest()[:12]


def attributes(value: object, path: str) -> list[Part]:
    """Return what an object holds in its dictionary and its slots, read where it lies: nothing of its own runs."""
    return [Part(f".{name}", field_path(path, name), item) for name, item in _held(value)]


def has_attributes(value: object) -> bool:
    """Say whether an object has places for attributes, though none may be set."""
    slots = (entry for base in type(value).__mro__ for entry in base.__dict__.values())
    return bool(getattr(type(value), "__dictoffset__", 0)) or any(isinstance(s, MemberDescriptorType) for s in slots)


def _held(value: object) -> Iterator[tuple[str, Any]]:
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    yield from ((str(name), item) for name, item in list(own.items()))
    for base in type(value).__mro__:
        for name, slot in base.__dict__.items():
            if isinstance(slot, MemberDescriptorType) and name != "__dict__":
                try:
                    yield name, slot.__get__(value, type(value))
                except AttributeError:
                    continue
