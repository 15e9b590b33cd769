"""Random states for tests, and the types that stand in them."""

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
        generator.spawn(seed % 3)
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


def state_of_every_kind() -> dict[Any, Any]:
    """A small state with a leaf of every kind."""
    base = torch.arange(60, dtype=torch.float32).view(6, 10)
    return {
        "caches": [Cache(k=base[1:3], v=base[2:, 1]), Cache(k=torch.zeros(3, dtype=torch.complex64).conj(), v=None)],
        "odd key": Pair(Season.SUMMER, np.arange(6)[::-2]),
        3: (True, 7, -2.5, 1j, "text", b"bytes", np.float32(3)),
        "rng": random.Random(1),
        "numpy": np.random.default_rng(4),
    }


def overlapping_views() -> dict[str, Any]:
    """Tensors over one storage, with what nobody sees in between, and another tensor."""
    base = torch.arange(1000, dtype=torch.float32)
    return {"a": base[100:200], "b": base[150:300], "c": torch.ones(3), "d": base[900:]}
