"""Random states for tests, and an equality of states that shares no code with what it tests."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from worldmove.state.dtypes import TORCH_COMPLEX, TORCH_ITEM_BYTES

Season = Enum("Season", "SPRING SUMMER")


@dataclass
class Cache:
    """A mutable record."""

    k: Any
    v: Any


@dataclass(frozen=True, slots=True)
class Cursor:
    """A frozen record with slots."""

    row: Any


class Pair(NamedTuple):
    """A named tuple."""

    left: Any
    right: Any


TYPES: dict[str, type] = {"Cache": Cache, "Cursor": Cursor, "Pair": Pair, "Season": Season}

NUMPY_DTYPES = ("<f4", ">f4", "<f8", "<i8", "<q", ">u2", "|?", "|b", "<F", "|S3", "<U2", "|V5", "<M8[ns]", "<m8")
NUMBERS = ("<f4", "<f8", "<e", "<l", "<q", "|B", "|?", "<D", "<M8[s]", "<m8[25us]")


def float_of(bits: int) -> float:
    """The float with these 64 bits, whatever NaN that is."""
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return value


@st.composite
def pools(draw: st.DrawFn) -> list[Any]:
    """Some pieces of memory, as numpy arrays and as torch tensors of their own."""
    made: list[Any] = []
    for size in draw(st.lists(st.integers(16, 700), min_size=1, max_size=3)):
        data = np.frombuffer(draw(st.randoms(use_true_random=False)).randbytes(size), dtype=np.uint8).copy()
        made.append(data if draw(st.booleans()) else torch.from_numpy(data).clone())
    return made


def _shapes(draw: st.DrawFn) -> list[int]:
    return draw(st.lists(st.integers(0, 3), max_size=4))


@st.composite
def tensors(draw: st.DrawFn, pool: list[Any]) -> torch.Tensor:
    """Any view of some memory of the pool."""
    memory = draw(st.sampled_from(pool))
    base = memory if isinstance(memory, torch.Tensor) else torch.from_numpy(memory)
    name = draw(st.sampled_from(sorted(TORCH_ITEM_BYTES)))
    size, shape = TORCH_ITEM_BYTES[name], _shapes(draw)
    stride = [draw(st.integers(0, 5)) for _ in shape]
    reach = sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if 0 not in shape else 0
    room = base.untyped_storage().nbytes() // size - reach - 1
    if room < 0:
        shape, stride, room = [], [], 0
    item = torch.zeros(size, dtype=torch.uint8).view(getattr(torch, name))
    tensor = item.set_(base.untyped_storage(), draw(st.integers(0, max(room, 0))), shape, stride)
    tensor = tensor.conj() if name in TORCH_COMPLEX and draw(st.booleans()) else tensor
    negated: torch.Tensor = torch._neg_view(tensor) if draw(st.integers(0, 3)) == 0 else tensor
    return negated


@st.composite
def arrays(draw: st.DrawFn, pool: list[Any]) -> Any:
    """Any numpy view of some memory of the pool, negative strides included."""
    memory = draw(st.sampled_from(pool))
    memory = memory if isinstance(memory, np.ndarray) else memory.numpy()
    dtype, shape = np.dtype(draw(st.sampled_from(NUMPY_DTYPES))), _shapes(draw)
    strides = [draw(st.integers(-13, 13)) for _ in shape]
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)] if 0 not in shape else []
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + dtype.itemsize
    if memory.nbytes < high - low:
        shape, strides, low, high = [], [], 0, dtype.itemsize
    if memory.nbytes < high:
        return memory
    offset = draw(st.integers(-low, memory.nbytes - high))
    array: Any = np.ndarray(shape, dtype, buffer=memory, offset=offset, strides=strides)
    array.flags.writeable = draw(st.booleans())
    return array


def _torch_generator(seed: int) -> torch.Generator:
    generator = torch.Generator().manual_seed(seed)
    torch.randn(seed % 40, generator=generator)
    return generator


def _numpy_generator(kind: type[np.random.BitGenerator]) -> Callable[[int], np.random.Generator]:
    def make(seed: int) -> np.random.Generator:
        generator = np.random.Generator(kind(seed))
        generator.integers(0, 100, size=seed % 7, dtype=np.uint32)
        return generator

    return make


def _random_state(seed: int) -> np.random.RandomState:
    generator = np.random.RandomState(seed)
    generator.normal(size=seed % 4)
    return generator


def _random(seed: int) -> random.Random:
    generator = random.Random(seed)
    for _ in range(seed % 4):
        generator.gauss(0, 1)
    return generator


BIT_GENERATORS = (
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
)
GENERATORS: tuple[Callable[[int], Any], ...] = (
    _torch_generator,
    _random,
    _random_state,
    *(_numpy_generator(kind) for kind in BIT_GENERATORS),
)


def scalars() -> st.SearchStrategy[Any]:
    """Any scalar leaf, enums and numpy scalars included."""
    any_text = st.text(st.characters(categories=None, exclude_categories=()), max_size=6)
    numbers = st.tuples(st.sampled_from(NUMBERS), st.binary(min_size=16, max_size=16))
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**300), 2**300),
        st.integers(0, 2**64 - 1).map(float_of),
        st.builds(complex, *[st.integers(0, 2**64 - 1).map(float_of)] * 2),
        any_text,
        st.binary(max_size=20),
        st.sampled_from(Season),
        numbers.map(lambda n: np.frombuffer(n[1][: np.dtype(n[0]).itemsize], dtype=np.dtype(n[0]))[0]),
    )


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """A whole state: containers over views that share memory, scalars, and generators, some of them shared."""
    pool = draw(pools())
    makers = draw(st.lists(st.tuples(st.sampled_from(GENERATORS), st.integers(0, 99)), max_size=2))
    generators = [make(seed) for make, seed in makers]
    choices = [scalars(), tensors(pool), tensors(pool), arrays(pool)]
    leaves = st.one_of(*choices, st.sampled_from(generators)) if generators else st.one_of(*choices)
    keys = st.one_of(st.text(max_size=4), st.integers(-3, 2**70), st.booleans())
    return draw(
        st.recursive(
            leaves,
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.lists(inner, max_size=4).map(tuple),
                st.dictionaries(keys, inner, max_size=4),
                st.builds(Cache, inner, inner),
                st.builds(Cursor, inner),
                st.builds(Pair, inner, inner),
            ),
            max_leaves=12,
        )
    )


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
    kind = type(value)
    if kind in (list, tuple, Pair):
        return kind.__name__, tuple(plain(item) for item in value)
    if kind is dict:
        return "dict", tuple((type(key).__name__, key, plain(item)) for key, item in value.items())
    if kind in (Cache, Cursor):
        return kind.__name__, tuple(plain(getattr(value, name)) for name in kind.__dataclass_fields__)
    if kind is torch.Tensor:
        bits = value.is_conj(), value.is_neg(), value.is_inference()
        geometry = tuple(value.shape), value.stride(), value.storage_offset(), value.untyped_storage().nbytes()
        return "tensor", str(value.dtype), geometry, bits, element_bytes(value)
    if kind is np.ndarray:
        return (
            "array",
            value.dtype,
            value.dtype.char,
            value.shape,
            value.strides,
            value.flags.writeable,
            value.tobytes(),
        )
    if isinstance(value, np.generic):
        return "number", kind, value.dtype, value.tobytes()
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if type(value) is float:
        return "float", struct.pack("<d", value)
    if type(value) is complex:
        return "complex", struct.pack("<dd", value.real, value.imag)
    if type(value) is torch.Generator:
        return "torch", value.get_state().numpy().tobytes()
    if type(value) is random.Random:
        return "random", value.getstate()
    if isinstance(value, np.random.Generator):
        seed = value.bit_generator.seed_seq
        assert isinstance(seed, np.random.SeedSequence)
        return "numpy", str(value.bit_generator.state), str(seed.state)
    if isinstance(value, np.random.RandomState):
        return "legacy", str(value.get_state(legacy=False)), value.get_state()[1].tobytes()  # type: ignore[index, union-attr]
    return type(value).__name__, value
