"""The dictionaries in which numpy's generators tell their state, to and from lists that have one encoding."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORDS = frozenset(("|i1", "|u1", *(f"{order}{sign}{size}" for order in "<>" for sign in "iu" for size in (2, 4, 8))))


def plain(value: Any) -> Any:
    """Turn a state into lists; integers become bytes, for they exceed 64 bits. Raises TypeError for anything else."""
    if type(value) is dict:
        return ["dict", [[key, plain(item)] for key, item in sorted(value.items())]]
    if type(value) in (tuple, list):
        return [type(value).__name__, [plain(item) for item in value]]
    if type(value) is np.ndarray:
        return ["array", _words_dtype(value), value.tobytes()]
    if type(value) is int:
        return ["int", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)]
    if type(value) is float:
        return ["float", struct.pack("<d", value)]
    if type(value) is str:
        return ["str", value]
    raise TypeError(f"it holds a {type(value).__name__}")


def _words_dtype(array: NDArray[Any]) -> str:
    """Return the dtype of a row of integers: words of a state, or the entropy that a seed sequence was given."""
    dtype = array.dtype
    if array.ndim != 1 or dtype.str not in _WORDS or dtype.char != np.dtype(dtype.str).char or dtype.metadata:
        raise TypeError(f"it holds an array of {dtype!r} with {array.ndim} dimensions")
    return dtype.str


def _words(dtype: str, data: bytes) -> NDArray[Any]:
    if dtype not in _WORDS:
        raise ValueError(f"an array of {dtype!r}")
    return np.frombuffer(data, dtype=dtype).copy()


def from_plain(lists: Any) -> Any:
    """Turn the lists into the state again. Raises whatever comes of lists that ``plain`` did not make."""
    kind, *rest = lists
    return _FROM_PLAIN[kind](*rest)


_FROM_PLAIN: dict[str, Callable[..., Any]] = {
    "dict": lambda items: {key: from_plain(item) for key, item in items},
    "tuple": lambda items: tuple(from_plain(item) for item in items),
    "list": lambda items: [from_plain(item) for item in items],
    "array": _words,
    "int": lambda data: int.from_bytes(data, "little", signed=True),
    "float": lambda data: struct.unpack("<d", data)[0],
    "str": str,
}
