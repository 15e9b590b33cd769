"""An equality of states that shares no code with what it tests."""

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.state.trees import Cache, Cursor, Pair


def element_bytes(tensor: torch.Tensor) -> bytes:
    """The raw bytes of a tensor's elements in row-major order; conjugate and negative bits play no part."""
    size = tensor.element_size()
    flat = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    shape, stride = (*tensor.shape, size), (*(s * size for s in tensor.stride()), 1)
    if 0 in shape:
        return b""
    return flat.as_strided(shape, stride, int(tensor.storage_offset()) * size).contiguous().numpy().tobytes()


def plain(value: Any) -> Any:
    """Turn a state into nested tuples of plain values that are equal if, and only if, the states are."""
    if isinstance(value, np.generic):
        return "number", type(value), value.dtype, value.tobytes()
    return type(value).__name__, _PLAIN.get(type(value), lambda scalar: scalar)(value)


def _items(value: Any) -> Any:
    return tuple(plain(item) for item in value)


def _entries(value: dict[Any, Any]) -> Any:
    return tuple((type(key), key, plain(item)) for key, item in value.items())


def _fields(value: Any) -> Any:
    return tuple(plain(getattr(value, name)) for name in value.__dataclass_fields__)


def _tensor(value: torch.Tensor) -> Any:
    bits = value.is_conj(), value.is_neg(), value.is_inference()
    geometry = tuple(value.shape), value.stride(), value.storage_offset(), value.untyped_storage().nbytes()
    return str(value.dtype), geometry, bits, element_bytes(value)


def _array(value: Any) -> Any:
    return value.dtype, value.dtype.char, value.shape, value.strides, value.flags.writeable, value.tobytes()


def _numpy(value: np.random.Generator) -> Any:
    seed = value.bit_generator.seed_seq
    assert isinstance(seed, np.random.SeedSequence)
    return str(value.bit_generator.state), str(seed.state)


def _legacy(value: np.random.RandomState) -> Any:
    state: Any = value.get_state(legacy=False)
    return str(state), state["state"]["key"].tobytes(), struct.pack("<d", state["gauss"])


_PLAIN: dict[type, Callable[[Any], Any]] = {
    list: _items,
    tuple: _items,
    Pair: _items,
    dict: _entries,
    Cache: _fields,
    Cursor: _fields,
    torch.Tensor: _tensor,
    np.ndarray: _array,
    float: lambda value: struct.pack("<d", value),
    complex: lambda value: struct.pack("<dd", value.real, value.imag),
    torch.Generator: lambda value: value.get_state().numpy().tobytes(),
    random.Random: lambda value: value.getstate(),
    np.random.Generator: _numpy,
    np.random.RandomState: _legacy,
}
