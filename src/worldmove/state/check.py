"""What a leaf of a manifest must satisfy by itself, whoever wrote it."""

from collections.abc import Iterable

from worldmove.errors import ManifestError
from worldmove.state.dtypes import TORCH_COMPLEX, TORCH_ITEM_BYTES, numpy_item_bytes
from worldmove.state.geometry import bounds
from worldmove.state.leaf import (
    MAX_SCALAR_BYTES,
    ArrayLeaf,
    GeneratorLeaf,
    Leaf,
    NumpyScalarLeaf,
    ScalarLeaf,
    TensorLeaf,
    decode_scalar,
)

MAX_DIMENSIONS = 64
MAX_NUMBER = 1 << 48
"""No offset, stride or length in a state reaches this, so that no sum of them leaves 63 bits."""


def check_value(leaf: Leaf) -> None:
    """Raise ManifestError unless a scalar's bytes are canonical. Whatever else a leaf is, it passes."""
    if isinstance(leaf, ScalarLeaf):
        if len(leaf.value) > MAX_SCALAR_BYTES:
            raise ManifestError(f"a scalar has {len(leaf.value)} bytes, more than {MAX_SCALAR_BYTES}")
        decode_scalar(leaf)
    elif isinstance(leaf, NumpyScalarLeaf) and not _is_number(leaf):
        raise ManifestError(f"{len(leaf.value)} bytes are no numpy scalar of dtype {leaf.dtype[:40]!r}")


def check_view(view: TensorLeaf | ArrayLeaf) -> None:
    """Raise ManifestError unless a tensor or array lies inside its own window, and all its numbers in range."""
    if isinstance(view, TensorLeaf):
        _check_tensor(view)
    else:
        _check_array(view)


def check_generators(leaves: Iterable[Leaf], num_generators: int) -> None:
    """Raise ManifestError unless the generators are named in order, each at least once."""
    known = 0
    for leaf in leaves:
        if isinstance(leaf, GeneratorLeaf):
            if not 0 <= leaf.generator <= known:
                raise ManifestError(f"generator {leaf.generator} is named after {known}")
            known = max(known, leaf.generator + 1)
    if known != num_generators:
        raise ManifestError(f"{num_generators} generators are there and {known} are named")


def _is_number(leaf: NumpyScalarLeaf) -> bool:
    return leaf.dtype[1:2] not in "SUV" and numpy_item_bytes(leaf.dtype) == len(leaf.value)


def item_bytes(leaf: TensorLeaf | ArrayLeaf) -> int:
    """Return the bytes of one element. Raises ManifestError where the dtype is not carried."""
    size = TORCH_ITEM_BYTES.get(leaf.dtype) if isinstance(leaf, TensorLeaf) else numpy_item_bytes(leaf.dtype)
    if size is None:
        raise ManifestError(f"the dtype {leaf.dtype[:40]!r} is not carried")
    return size


def _check_tensor(leaf: TensorLeaf) -> None:
    _check_shape(leaf.shape, leaf.stride)
    _check_range(leaf.offset, leaf.window_offset, leaf.window_length, *leaf.stride)
    if (leaf.storage is None) != (leaf.window_length == 0) or (leaf.storage is None and leaf.window_offset):
        raise ManifestError("a tensor has a storage if, and only if, its window has bytes")
    if leaf.conjugate and leaf.dtype not in TORCH_COMPLEX:
        raise ManifestError(f"a tensor of {leaf.dtype[:40]!r} has no conjugate bit")
    if leaf.storage is not None and leaf.storage < 0:
        raise ManifestError("a storage is counted from 0")
    size = item_bytes(leaf)
    end = bounds(leaf.offset * size, size, leaf.shape, [stride * size for stride in leaf.stride])[1]
    if 0 not in leaf.shape and end > leaf.window_length:
        raise ManifestError(f"a tensor ends at byte {end} of a window of {leaf.window_length}")


def _check_array(leaf: ArrayLeaf) -> None:
    _check_shape(leaf.shape, leaf.strides)
    _check_range(leaf.offset, *(abs(stride) for stride in leaf.strides))
    empty = 0 in leaf.shape
    if (leaf.storage is None) != empty or (empty and leaf.offset):
        raise ManifestError("an array has a storage if, and only if, it has elements")
    if leaf.storage is not None and leaf.storage < 0:
        raise ManifestError("a storage is counted from 0")
    if bounds(leaf.offset, item_bytes(leaf), leaf.shape, leaf.strides)[0] < 0:
        raise ManifestError("an array begins before its storage")


def _check_shape(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    if len(shape) != len(strides) or len(shape) > MAX_DIMENSIONS:
        raise ManifestError(f"{len(shape)} dimensions with {len(strides)} strides")
    _check_range(*shape)


def _check_range(*numbers: int) -> None:
    if any(not 0 <= number < MAX_NUMBER for number in numbers):
        raise ManifestError("a length, offset or stride is out of range")
