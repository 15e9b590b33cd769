"""A tree made of a manifest and the memory that it speaks of."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import numpy as np
import torch

from worldmove.errors import ManifestError, StateRefused
from worldmove.state import array, generator
from worldmove.state.capture import Capture, DeviceStorage
from worldmove.state.extent import Extent
from worldmove.state.leaf import (
    ArrayLeaf,
    DeviceTensorLeaf,
    EnumLeaf,
    GeneratorLeaf,
    NumpyScalarLeaf,
    ScalarLeaf,
    TensorLeaf,
    decode_scalar,
)
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.tree import rebuild


def build(state: Capture, types: Mapping[str, type]) -> Any:
    """Make the tree. Its tensors and arrays are views of the capture's storages; its generators are new objects."""
    return rebuild(state.manifest.structure, iter(make_leaves(state, types)), types)


def make_leaves(state: Capture, types: Mapping[str, type]) -> list[Any]:
    """Make the leaves alone."""
    return list(make_some(state, types, range(len(state.manifest.leaves))).values())


def make_some(state: Capture, types: Mapping[str, type], which: Iterable[int]) -> dict[int, Any]:
    """Make some of the leaves."""
    maker, leaves = _Maker(state, types), state.manifest.leaves
    # Not inference tensors, whatever mode the caller is in: the session will be written in any mode.
    with torch.inference_mode(mode=False):
        return {i: maker.value(leaves[i]) for i in which}


class _Maker:
    """Makes leaves, each torch storage and each generator once."""

    def __init__(self, state: Capture, types: Mapping[str, type]) -> None:
        self._storages = state.storages
        self._kit = state.kit
        self._types = types
        self._generators = [generator.load(record, state.kit) for record in state.manifest.generators]
        self._windows: dict[tuple[int, int, int], torch.UntypedStorage] = {}

    def value(self, leaf: LeafRecord) -> Any:
        match leaf.content:
            case ScalarLeaf():
                return decode_scalar(leaf.content)
            case TensorLeaf():
                return array.make_tensor(leaf.content, self._window(leaf.content))
            case ArrayLeaf(storage=storage):
                return array.make_array(leaf.content, self._memory(storage))
            case NumpyScalarLeaf():
                return array.make_number(leaf.content)
            case GeneratorLeaf(generator=index):
                return self._generators[index]
            case EnumLeaf():
                return self._member(leaf.path, leaf.content)

    def _memory(self, index: int | None) -> array.Memory:
        storage = None if index is None else self._storages[index]
        if isinstance(storage, DeviceStorage):
            raise ManifestError("an array lies in host memory, and its storage does not")
        return _NOTHING if storage is None else storage.memory

    def _window(self, leaf: TensorLeaf) -> torch.UntypedStorage:
        if leaf.storage is None and isinstance(leaf, DeviceTensorLeaf) and self._kit is not None:
            return self._kit.nothing()
        if leaf.storage is None:
            return torch.empty(0, dtype=torch.uint8, device="cpu").untyped_storage()
        key = (leaf.storage, leaf.window_offset, leaf.window_length)
        if key not in self._windows:
            self._windows[key] = self._viewed(leaf, Extent(offset=leaf.window_offset, length=leaf.window_length))
        return self._windows[key]

    def _viewed(self, leaf: TensorLeaf, window: Extent) -> torch.UntypedStorage:
        assert leaf.storage is not None
        storage = self._storages[leaf.storage]
        if isinstance(storage, DeviceStorage):
            return storage.kit.storage(storage.part(window), storage.owner)
        return torch.from_numpy(storage.memory[window.offset : window.end]).untyped_storage()

    def _member(self, path: str, leaf: EnumLeaf) -> Enum:
        kind = self._types.get(leaf.type)
        if kind is None or not issubclass(kind, Enum) or leaf.member not in kind.__members__:
            raise StateRefused(path, f"{leaf.type}.{leaf.member} is not registered here")
        return kind.__members__[leaf.member]


_NOTHING: array.Memory = np.empty(0, dtype=np.uint8)
