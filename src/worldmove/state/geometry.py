"""Which bytes a strided view uses, exactly."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from worldmove.state.extent import Extent

MAX_PIECES = 1 << 22
"""The most separate pieces one view may have: 64 MiB of bookkeeping."""

Runs = NDArray[np.int64]
"""[n, 2]: begin and end of each run of bytes; sorted, disjoint, not touching."""

NO_RUNS: Runs = np.empty((0, 2), dtype=np.int64)


def num_pieces(item_bytes: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many pieces ``byte_runs`` would have to look at."""
    return 0 if 0 in shape else math.prod(count for _, count in _run_and_outer(item_bytes, shape, strides)[1])


def byte_runs(offset: int, item_bytes: int, shape: Sequence[int], strides: Sequence[int]) -> Runs:
    """Return the bytes of a view whose first element lies at ``offset``. ``strides`` in bytes, of either sign."""
    if 0 in shape or item_bytes == 0:
        return NO_RUNS
    offset += sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True) if stride < 0)
    length, outer = _run_and_outer(item_bytes, shape, strides)
    if not outer:
        return np.array([[offset, offset + length]], dtype=np.int64)
    begins = np.array([offset], dtype=np.int64)
    for stride, count in outer:
        begins = (begins[:, None] + np.arange(count, dtype=np.int64) * stride).reshape(-1)
    return _union(np.stack((begins, begins + length), axis=1))


def bounds(offset: int, item_bytes: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return the first byte of a view and the first after it; an empty view has no bytes."""
    if 0 in shape:
        return offset, offset
    reach = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    return offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0) + item_bytes


def merge(parts: Sequence[Runs]) -> Runs:
    """Return the union of what ``byte_runs`` returned for several views."""
    return parts[0] if len(parts) == 1 else _union(np.concatenate([NO_RUNS, *parts]))


def overlap(runs: Runs, others: Iterable[Extent]) -> bool:
    """Say whether any of ``others`` has a byte in common with the runs."""
    for other in others:
        index = int(np.searchsorted(runs[:, 1], other.offset, side="right"))
        if index < len(runs) and runs[index, 0] < other.end and other.length:
            return True
    return False


def to_extents(runs: Runs) -> tuple[Extent, ...]:
    """Return the runs as extents."""
    return tuple(Extent(offset=begin, length=end - begin) for begin, end in runs.tolist())


def _union(runs: Runs) -> Runs:
    """Sort runs; those that overlap or touch become one."""
    if not len(runs):
        return NO_RUNS
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    ends = np.maximum.accumulate(runs[:, 1])
    first = np.concatenate(([True], runs[1:, 0] > ends[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.stack((runs[first, 0], ends[last]), axis=1)


def _run_and_outer(item_bytes: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, list[tuple[int, int]]]:
    """Return the length of the run that the inner dimensions fill, and (stride, count) of those around it."""
    length = item_bytes
    outer: list[tuple[int, int]] = []
    pairs = sorted((abs(stride), count) for count, stride in zip(shape, strides, strict=True) if count > 1 and stride)
    for stride, count in pairs:
        if not outer and stride <= length:
            length += stride * (count - 1)
        else:
            outer.append((stride, count))
    return length, outer
