"""The canonical bytes of a leaf: its elements in row-major order, whatever its strides."""

from types import MappingProxyType

import torch

_WORDS = MappingProxyType({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64})


def leaf_bytes(view: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a strided tensor, flat, as they lie in memory: a view where they lie in order, else a copy.

    Strides of 0 and overlapping ones are followed. A conjugate or negative bit is no byte and changes none; no dtype
    is ever computed with, so that NaNs stay what they are.
    """
    unit = min(view.element_size(), 8)
    parts = view.element_size() // unit
    words = torch.empty(0, dtype=_WORDS[unit], device=view.device).set_(
        view.untyped_storage(),
        view.storage_offset() * parts,
        (*view.shape, parts),
        (*(stride * parts for stride in view.stride()), 1),
    )
    return words.contiguous().reshape(-1).view(torch.uint8)
