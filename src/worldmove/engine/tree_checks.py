"""Checking a tree that an engine is given: each raises StateRefused with the path of what does not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from worldmove.errors import StateRefused


def require(condition: bool, path: str, why: str) -> None:
    """Refuse the state unless the condition holds."""
    if not condition:
        raise StateRefused(path, why)


def mapping(value: Any, names: Sequence[str], path: str) -> Mapping[str, Any]:
    """Return a dict that has these names and no other."""
    require(isinstance(value, Mapping), path, "it must be a dict")
    if value.keys() == frozenset(names):
        return dict(value)
    for name in names:
        require(name in value, f"{path}.{name}".lstrip("."), "it is missing")
    other = next(name for name in value if name not in names)
    raise StateRefused(f"{path}.{other}".lstrip("."), "this engine has no such leaf")


def sequence(value: Any, length: int | None, path: str) -> Sequence[Any]:
    """Return a list or tuple of this length, or of any if it is None."""
    require(isinstance(value, list | tuple), path, "it must be a list or tuple")
    require(length is None or len(value) == length, path, f"it must have {length} entries")
    return list(value)


def whole(value: Any, path: str, *, most: int | None = None, step: int = 1) -> int:
    """Return a whole number from 0 to ``most``, a multiple of ``step``."""
    require(type(value) is int, path, "it must be a whole number")
    require(value >= 0 and (most is None or value <= most) and value % step == 0, path, f"{value} is out of range")
    return int(value)


def pose_of(value: Any) -> tuple[int, int]:
    """Return where a view stands: two whole numbers."""
    y, x = sequence(value, 2, "pose")
    require(type(y) is int, "pose[0]", "it must be a whole number")
    require(type(x) is int, "pose[1]", "it must be a whole number")
    return y, x


def held_of(value: Any, known: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that are down, each of them known and there once; what ``padded`` has put behind them is not."""
    keys = sequence(value, None, "held")
    while keys and keys[-1] == "":
        keys = keys[:-1]
    for index, key in enumerate(keys):
        require(key in known and key not in keys[:index], f"held[{index}]", f"{key!r} is no key, or is there twice")
    return tuple(keys)


def padded(keys: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that are down as a state has them: always as many leaves.

    A state that keeps its shape is read at a freeze by comparing it with what is known of it.
    """
    return (*keys, *("" for _ in range(len(known) - len(keys))))
