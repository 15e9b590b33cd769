"""Ways in which one value of a message may be another: every one that its type can have, each drawn from a seed."""

import random
from collections.abc import Callable, Mapping
from typing import Any

Mutator = Callable[[random.Random, Any, Any], Any]
"""(rng, the value, another message's value of this field) -> the changed value."""


def flip_int(rng: random.Random, value: int, other: Any) -> int:
    return value ^ (1 << rng.randrange(16))


def flip_text(rng: random.Random, value: str, other: Any) -> str:
    if not value:
        return "x"
    at = rng.randrange(len(value))
    return value[:at] + chr(ord(value[at]) ^ (1 << rng.randrange(7))) + value[at + 1 :]


def flip_bytes(rng: random.Random, value: bytes, other: Any) -> bytes:
    if not value:
        return b"\1"
    changed = bytearray(value)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def swap(rng: random.Random, value: Any, other: Any) -> Any:
    """Two parts in each other's place."""
    if len(value) < 2:
        return value
    if isinstance(value, tuple):
        items = list(value)
        i, j = rng.sample(range(len(items)), 2)
        items[i], items[j] = items[j], items[i]
        return tuple(items)
    cut = rng.randrange(1, len(value))
    return value[cut:] + value[:cut]


def truncate(rng: random.Random, value: Any, other: Any) -> Any:
    return value[: rng.randrange(len(value))] if value else value


def repeat(rng: random.Random, value: Any, other: Any) -> Any:
    """A part twice."""
    at = rng.randrange(len(value) + 1)
    return value[:at] + value[max(0, at - 1) :]


def zeros(rng: random.Random, value: Any, other: Any) -> Any:
    return tuple(_zero(item) for item in value) if isinstance(value, tuple) else _zero(value)


def _zero(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes(len(value))
    return "" if isinstance(value, str) else type(value)() if not isinstance(value, tuple) else value


def largest(rng: random.Random, value: Any, other: Any) -> Any:
    return (1 << 62) - 1 if isinstance(value, int) else rng.choice([float("inf"), float("nan"), 1e300])


def negative(rng: random.Random, value: Any, other: Any) -> Any:
    return -value - 1


def scaled(rng: random.Random, value: float, other: Any) -> float:
    return value * rng.choice([1e-9, 0.5, 2.0, 1e9])


def opposite(rng: random.Random, value: bool, other: Any) -> bool:
    return not value


def foreign(rng: random.Random, value: Any, other: Any) -> Any:
    """What another session's, or an earlier attempt's, message says here."""
    return other


def inside(rng: random.Random, value: tuple[Any, ...], other: Any) -> tuple[Any, ...]:
    """One part changed."""
    at = rng.randrange(len(value))
    part = value[at]
    changed = rng.choice(list(mutators_of(part).values()))(rng, part, part)
    return (*value[:at], changed, *value[at + 1 :])


def key_lost(rng: random.Random, value: dict[str, Any], other: Any) -> dict[str, Any]:
    gone = rng.choice(sorted(value))
    return {key: item for key, item in value.items() if key != gone}


def entry_changed(rng: random.Random, value: dict[str, Any], other: Any) -> dict[str, Any]:
    key = rng.choice(sorted(value))
    return value | {key: flip_text(rng, value[key], other)}


def made_up(rng: random.Random, value: None, other: Any) -> int:
    return 1 << rng.randrange(4, 13)


def entry_added(rng: random.Random, value: dict[str, Any], other: Any) -> dict[str, Any]:
    return value | {"more": "x"}


def item_added(rng: random.Random, value: tuple[Any, ...], other: Any) -> tuple[Any, ...]:
    return (*value, rng.randrange(1 << 12))


def enlarged(rng: random.Random, value: bytes, other: Any) -> bytes:
    """Of an absurd size."""
    return value + bytes(1 << rng.randrange(10, 20))


def emptied(rng: random.Random, value: Any, other: Any) -> Any:
    return type(value)()


def rows_made_up(rng: random.Random, value: None, other: Any) -> bytes:
    """Numbers of rows that are none, or of many."""
    return rng.choice([b"", rng.randbytes(4), bytes(4 << rng.randrange(10)), b"\xff" * 8])


def rolls_made_up(rng: random.Random, value: dict[str, Any], other: Any) -> dict[str, Any]:
    """An engine's word of what it has never rolled: no leaf, no axis, or far beyond its end."""
    path = rng.choice(["window", "base", "trail", "no leaf", ""])
    return value | {path: (rng.choice([0, 1, 7]), rng.choice([0, 1, 5, 1 << 40]), rng.choice([0, 1, 1 << 40]))}


AHEAD: Mapping[str, Mapping[str, Mutator]] = {
    "bytes": {"enlarged": enlarged, "emptied": emptied},
    "NoneType": {"rows made up": rows_made_up},
    "dict": {"rolls made up": rolls_made_up},
    "tuple": {"emptied": emptied},
}
"""More ways, by the type of what is changed."""


def more_mutators_of(value: Any) -> Mapping[str, Mutator]:
    """Return every way to change a value of a message that is said before the boundary, or tells of rows."""
    return {**mutators_of(value), **AHEAD.get(type(value).__name__, {})}


def mutators_of(value: Any) -> Mapping[str, Mutator]:
    """Return the ways in which such a value may be changed, by name."""
    sequence = {"truncate": truncate, "repeat": repeat, "swap": swap, "zeros": zeros, "foreign": foreign}
    match value:
        case None:
            return {"made up": made_up}
        case bool():
            return {"opposite": opposite}
        case int():
            return {"flip": flip_int, "zeros": zeros, "largest": largest, "negative": negative, "foreign": foreign}
        case float():
            return {
                "scaled": scaled,
                "zeros": zeros,
                "largest": largest,
                "negative": negative,
                "foreign": foreign,
            }
        case str():
            return {"flip": flip_text, **sequence}
        case bytes():
            return {"flip": flip_bytes, **sequence}
        case tuple():
            return ({"inside": inside} if value else {}) | {"item added": item_added} | sequence
        case dict():
            of_one = {"key lost": key_lost, "entry changed": entry_changed} if value else {}
            return of_one | {"entry added": entry_added, "foreign": foreign}
    return {"foreign": foreign}
