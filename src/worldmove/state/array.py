"""Tensors and numpy arrays: what of them is carried, what is refused, and how they are made again."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd import forward_ad

from worldmove.errors import StateRefused
from worldmove.state.dtypes import NUMPY_REFUSED, TORCH_ITEM_BYTES, TORCH_REFUSED, numpy_item_bytes
from worldmove.state.leaf import ArrayLeaf, NumpyScalarLeaf, TensorLeaf
from worldmove.state.memory import MemoryKit

Memory = NDArray[np.uint8]

_TORCH_NAMES: Mapping[torch.dtype, str] = {
    getattr(torch, name): name for name in (*TORCH_ITEM_BYTES, *TORCH_REFUSED) if hasattr(torch, name)
}

_TENSOR_FAULTS: tuple[tuple[Callable[[torch.Tensor], Any], str], ...] = (
    (lambda t: t.layout is not torch.strided, "its layout is not strided"),
    (lambda t: t.is_nested, "it is a nested tensor"),
    (lambda t: t.requires_grad, "it requires grad, and its history is not state; detach it"),
    (lambda t: t.grad is not None, "it has a gradient, which would be dropped"),
    (lambda t: forward_ad.unpack_dual(t).tangent is not None, "it has a forward tangent, which would be dropped"),
    (lambda t: t._backward_hooks or t._post_accumulate_grad_hooks, "it has hooks, which would be dropped"),
    (lambda t: t._is_zerotensor(), "it is a zero tensor without memory of its own"),
    # Torch 2.13 has no named tensors any more; earlier ones ask like this.
    (lambda t: getattr(t, "has_names", bool)(), "its dimensions have names, which would be dropped"),
    (lambda t: t.__dict__, "it has Python attributes, which would be dropped"),
)


class _Raw:
    """Bytes at an address, for numpy; keeps their owners alive as long as an array shows them."""

    def __init__(self, address: int, num_bytes: int, owners: object, *, read_only: bool) -> None:
        self.__array_interface__ = {
            "data": (address, read_only),
            "shape": (num_bytes,),
            "typestr": "|u1",
            "version": 3,
        }
        self.owners = owners


def raw_memory(address: int, num_bytes: int, owners: object) -> Memory:
    """Return the bytes at an address, not copied and not writable. ``owners`` are kept alive with the result."""
    return np.asarray(_Raw(address, num_bytes, owners, read_only=True))


def writable_memory(address: int, num_bytes: int, owners: object) -> Memory:
    """Return the bytes at an address, not copied, to be written. ``owners`` are kept alive with the result."""
    return np.asarray(_Raw(address, num_bytes, owners, read_only=False))


def check_tensor(path: str, tensor: torch.Tensor, kit: MemoryKit | None = None) -> str:
    """Return the tensor's dtype name. Raises StateRefused where it would not come back the same."""
    name = _TORCH_NAMES.get(tensor.dtype)
    if name is None or name in TORCH_REFUSED:
        raise StateRefused(path, TORCH_REFUSED.get(name or "", f"{tensor.dtype} is not a carried dtype"))
    for is_at_fault, why in _TENSOR_FAULTS:
        if is_at_fault(tensor):
            raise StateRefused(path, why)
    if not tensor.is_cpu and (kit is None or not kit.holds(tensor)):
        raise StateRefused(
            path,
            f"it lies on {tensor.device}: not in host memory, nor on {kit.name if kit else 'a device of this engine'}",
        )
    return name


def tensor_window(path: str, tensor: torch.Tensor) -> tuple[int, int]:
    """Return address and length of the tensor's own torch storage."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except (RuntimeError, NotImplementedError) as error:
        raise StateRefused(path, "it has no memory that can be read") from error


def tensor_leaf(
    dtype: str, tensor: torch.Tensor, storage: int | None, window_offset: int, kind: type[TensorLeaf] = TensorLeaf
) -> TensorLeaf:
    """Return the leaf of a checked tensor whose torch storage begins at ``window_offset`` of ``storage``."""
    return kind(
        dtype=dtype,
        shape=tuple(tensor.shape),
        stride=tensor.stride(),
        offset=int(tensor.storage_offset()),
        storage=storage,
        window_offset=window_offset,
        window_length=tensor.untyped_storage().nbytes(),
        conjugate=tensor.is_conj(),
        negative=tensor.is_neg(),
    )


def make_tensor(leaf: TensorLeaf, storage: torch.UntypedStorage) -> torch.Tensor:
    """Return the tensor over its torch storage: same offset, strides and bits."""
    item = torch.empty(TORCH_ITEM_BYTES[leaf.dtype], dtype=torch.uint8, device=storage.device)
    # view, because torch.empty warns of complex32.
    tensor = item.view(getattr(torch, leaf.dtype)).set_(storage, leaf.offset, leaf.shape, leaf.stride)
    tensor = tensor.conj() if leaf.conjugate else tensor
    tensor = torch._neg_view(tensor) if leaf.negative else tensor
    assert isinstance(tensor, torch.Tensor)
    return tensor


def check_array(path: str, array: NDArray[Any]) -> str:
    """Return the array's dtype text. Raises StateRefused where it would not come back the same."""
    return _dtype_text(path, array.dtype)


def array_leaf(dtype: str, array: NDArray[Any], storage: int | None, offset: int) -> ArrayLeaf:
    """Return the leaf of a checked array whose first element lies at ``offset`` of ``storage``."""
    return ArrayLeaf(
        dtype=dtype,
        shape=array.shape,
        strides=array.strides,
        offset=offset,
        storage=storage,
        writeable=bool(array.flags.writeable),
    )


def make_array(leaf: ArrayLeaf, memory: Memory) -> NDArray[Any]:
    """Return the array over its storage's memory."""
    array: NDArray[Any] = np.ndarray(
        leaf.shape, dtype=np.dtype(leaf.dtype), buffer=memory, offset=leaf.offset, strides=leaf.strides
    )
    if not leaf.writeable:
        array.flags.writeable = False
    return array


def number_leaf(path: str, number: np.generic) -> NumpyScalarLeaf:
    """Return the leaf of a numpy scalar. Raises StateRefused where it would not come back the same."""
    text = _dtype_text(path, number.dtype)
    if text[1] in "SUV":
        raise StateRefused(path, f"a numpy scalar of dtype {text} is not carried; a str or bytes is")
    if type(number) is not np.dtype(text).type:
        raise StateRefused(path, f"{type(number).__qualname__} is a subclass of a numpy scalar")
    return NumpyScalarLeaf(dtype=text, value=number.tobytes())


def make_number(leaf: NumpyScalarLeaf) -> np.generic:
    """Return the numpy scalar."""
    number: np.generic = np.frombuffer(leaf.value, dtype=np.dtype(leaf.dtype))[0]
    return number


def _dtype_text(path: str, dtype: np.dtype[Any]) -> str:
    """Return byte order and character: what ``dtype.str`` says leaves long and long long one."""
    if dtype.char in NUMPY_REFUSED:
        raise StateRefused(path, NUMPY_REFUSED[dtype.char])
    if dtype.fields is not None:
        raise StateRefused(path, "a structured array is not carried; carry its fields")
    text = dtype.str if dtype.char in "SUVmM" else dtype.str[0] + dtype.char
    if dtype.metadata is not None or numpy_item_bytes(text) is None or type(np.dtype(text)) is not type(dtype):
        raise StateRefused(path, f"numpy dtype {dtype!r} is not carried")
    return text
