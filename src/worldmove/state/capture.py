"""A session's state at one boundary: its leaves found by path, its memory found by address. Copies no storage."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from worldmove.errors import ManifestError, StateRefused
from worldmove.state import array, generator
from worldmove.state.extent import Extent
from worldmove.state.geometry import bounds
from worldmove.state.leaf import (
    KINDS,
    MAX_SCALAR_BYTES,
    DeviceTensorLeaf,
    EnumLeaf,
    GeneratorLeaf,
    GeneratorRecord,
    Leaf,
    TensorLeaf,
    encode_scalar,
)
from worldmove.state.manifest import Manifest
from worldmove.state.memory import MemoryKit, Part
from worldmove.state.storage import LeafError, StorageRecord
from worldmove.state.tree import NO_TYPES, flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStorage:
    """One piece of host memory that leaves view. Lives as long as this object; its bytes stay the engine's."""

    memory: array.Memory
    used: tuple[Extent, ...]

    @property
    def address(self) -> int:
        """Where it begins."""
        return int(self.memory.ctypes.data)

    @property
    def num_bytes(self) -> int:
        """Its length, used or not."""
        return int(self.memory.nbytes)

    def view(self, extent: Extent) -> memoryview:
        """Return the bytes of an extent, not copied."""
        return self.memory[extent.offset : extent.end].data


class DeviceStorage(msgspec.Struct, frozen=True, eq=False):
    """One piece of device memory that leaves view. Lives as long as this object; its bytes stay the engine's.

    Made by C: of a state that is bound anew at each block, hundreds are made in the pause of a move.
    """

    address: int
    num_bytes: int
    used: tuple[Extent, ...]
    kit: MemoryKit
    owner: object
    """What keeps the memory alive."""

    def part(self, extent: Extent) -> Part:
        """Return where the bytes of an extent lie."""
        return Part(self.address + extent.offset, extent.length)

    def view(self, extent: Extent) -> memoryview:
        """Return the bytes of an extent, copied to host memory."""
        return self.kit.read(self.part(extent)).data


Storage = HostStorage | DeviceStorage


@dataclass(frozen=True, kw_only=True)  # no slots: what is worked out once is kept with it
class Capture:
    """The resolved state of one session at one boundary: a manifest, and the live storages that it speaks of."""

    manifest: Manifest
    storages: tuple[Storage, ...]
    kit: MemoryKit | None = None
    """That of the device on which some of it may lie."""
    plans: list[object] = field(default_factory=list, compare=False, repr=False)
    """How the device's digests are taken, once that was worked out."""

    @property
    def num_bytes(self) -> int:
        """The used bytes of all storages."""
        return self.manifest.num_bytes

    def with_values(self, manifest: Manifest) -> "Capture":
        """Return the same memory under a manifest that differs in values alone."""
        found = replace(self, manifest=manifest)
        vars(found)["addresses"] = self.addresses
        return found

    def lies_as(self, other: "Capture") -> bool:
        """Say whether all of it is the very memory of another capture, laid out by the same records."""
        is_laid_out_so = self.manifest.storages is other.manifest.storages
        return is_laid_out_so and (self.storages is other.storages or np.array_equal(self.addresses, other.addresses))

    @cached_property
    def addresses(self) -> NDArray[np.int64]:
        """Where each storage begins."""
        return np.array([storage.address for storage in self.storages], dtype=np.int64)


def capture(tree: Any, types: Mapping[str, type] = NO_TYPES, kit: MemoryKit | None = None) -> Capture:
    """Resolve a state tree. ``types`` are the dataclasses, named tuples and enums that may stand in it, by name.

    ``kit`` is that of the engine's device; without one, all of the state lies in host memory. The session must be
    still. Raises StateRefused, naming the path, for whatever could not be carried exactly.
    """
    flat = flatten(tree, types)
    reader = Reader(enums={kind: name for name, kind in types.items()}, kit=kit)
    parts = [reader.part(path, value) for path, value in zip(flat.paths, flat.values, strict=True)]
    blocks = _blocks([part for part in parts if isinstance(part, _Buffer)])
    leaves = [part.leaf(blocks) if isinstance(part, _Buffer) else part for part in parts]
    try:
        manifest = Manifest.of(flat.structure, flat.paths, leaves, reader.records)
    except LeafError as error:
        raise StateRefused(error.path, error.why) from error
    except ManifestError as error:
        raise StateRefused("", str(error)) from error
    storages = [
        storage_at(*where, record, kit) for where, record in zip(blocks.in_order(), manifest.storages, strict=True)
    ]
    return Capture(manifest=manifest, storages=tuple(storages), kit=kit)


def storage_at(address: int, num_bytes: int, owners: object, record: StorageRecord, kit: MemoryKit | None) -> Storage:
    """Return live memory as a storage that keeps its owners alive."""
    if not record.on_device:
        return HostStorage(memory=array.raw_memory(address, num_bytes, owners), used=record.used)
    if kit is None:
        raise StateRefused("", "some of it lies in the memory of a device, and here is none")
    return DeviceStorage(address, num_bytes, record.used, kit, owners)


@dataclass(slots=True)
class _Buffer:
    """A tensor or array, and the memory that its buffer spans."""

    dtype: str
    view: Any
    begin: int
    length: int
    kind: type[TensorLeaf] = TensorLeaf

    def leaf(self, blocks: "_Blocks") -> Leaf:
        if not self.length:
            return self._leaf(None, 0)
        storage, begin = blocks.find(self.begin)
        return self._leaf(storage, self.begin - begin)

    def _leaf(self, storage: int | None, offset: int) -> Leaf:
        if isinstance(self.view, torch.Tensor):
            return array.tensor_leaf(self.dtype, self.view, storage, offset, self.kind)
        first = 0 if storage is None else offset + int(self.view.ctypes.data) - self.begin
        return array.array_leaf(self.dtype, self.view, storage, first)


@dataclass(slots=True, kw_only=True)
class _Blocks:
    """Pieces of memory that do not overlap, numbered in the order in which they are found."""

    begins: Sequence[int]
    ends: Sequence[int]
    owners: Sequence[list[object]]
    order: dict[int, int]

    def find(self, address: int) -> tuple[int, int]:
        index = bisect_right(self.begins, address) - 1
        return self.order.setdefault(index, len(self.order)), self.begins[index]

    def in_order(self) -> list[tuple[int, int, list[object]]]:
        return [(self.begins[i], self.ends[i] - self.begins[i], self.owners[i]) for i in self.order]


def _blocks(buffers: Sequence[_Buffer]) -> _Blocks:
    """Join buffers that have bytes in common: sharing is a matter of addresses, whoever allocated them."""
    begins: list[int] = []
    ends: list[int] = []
    owners: list[list[object]] = []
    for buffer in sorted((b for b in buffers if b.length), key=lambda b: b.begin):
        if ends and buffer.begin < ends[-1]:
            ends[-1] = max(ends[-1], buffer.begin + buffer.length)
            owners[-1].append(buffer.view)
        else:
            begins.append(buffer.begin)
            ends.append(buffer.begin + buffer.length)
            owners.append([buffer.view])
    return _Blocks(begins=begins, ends=ends, owners=owners, order={})


class Reader:
    """Turns values into leaves, or into buffers whose storage is not yet known."""

    def __init__(self, *, enums: Mapping[type, str], kit: MemoryKit | None) -> None:
        self.enums = enums
        self._kit = kit
        self.records: list[GeneratorRecord] = []
        self._generators: dict[int, int] = {}
        self._parts: dict[int, str] = {}

    def part(self, path: str, value: Any) -> Leaf | _Buffer:
        kind = type(value)
        if kind is torch.Tensor:
            return self._tensor(path, value)
        if kind in KINDS:
            return self._scalar(path, value)
        if kind is np.ndarray:
            return self._array(path, value)
        if isinstance(value, Enum):
            return self._member(path, value)
        if isinstance(value, np.generic):
            return array.number_leaf(path, value)
        if generator.is_generator(value):
            return self._generator(path, value)
        raise StateRefused(path, _why_unknown(value))

    def _scalar(self, path: str, value: Any) -> Leaf:
        leaf = encode_scalar(value)
        if len(leaf.value) > MAX_SCALAR_BYTES:
            raise StateRefused(path, f"it has {len(leaf.value)} bytes, and a scalar may have {MAX_SCALAR_BYTES}")
        return leaf

    def _tensor(self, path: str, value: torch.Tensor) -> _Buffer:
        dtype = array.check_tensor(path, value, self._kit)
        begin, length = array.tensor_window(path, value)
        on_device = self._kit is not None and self._kit.holds(value)
        return _Buffer(dtype, value, begin, length, DeviceTensorLeaf if on_device else TensorLeaf)

    def _array(self, path: str, value: Any) -> _Buffer:
        dtype = array.check_array(path, value)
        begin, end = bounds(int(value.ctypes.data), value.itemsize, value.shape, value.strides)
        return _Buffer(dtype, value, begin, end - begin)

    def _member(self, path: str, value: Enum) -> Leaf:
        kind = type(value)
        if kind not in self.enums:
            raise StateRefused(path, f"{kind.__qualname__} is not registered among the engine's state types")
        if kind.__members__.get(value.name) is not value:
            raise StateRefused(path, f"{value!r} is no single member of {kind.__qualname__}")
        return EnumLeaf(type=self.enums[kind], member=value.name)

    def _generator(self, path: str, value: Any) -> Leaf:
        if id(value) in self._generators:
            return GeneratorLeaf(generator=self._generators[id(value)])
        record = generator.save(path, value, self._kit)
        for part in generator.shared_parts(value):
            if id(part) in self._parts:
                raise StateRefused(path, f"it shares its {type(part).__name__} with {self._parts[id(part)]}")
            self._parts[id(part)] = path
        self._generators[id(value)] = len(self.records)
        self.records.append(record)
        return GeneratorLeaf(generator=self._generators[id(value)])


def _why_unknown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__} is a subclass of Tensor, and what it adds would be dropped"
    bases = [base.__name__ for base in (*KINDS, dict, list, tuple, np.ndarray) if isinstance(value, base)]
    return f"{type(value).__qualname__} is not a kind of leaf" + (
        f", though it derives from {bases[0]}" if bases else ""
    )
