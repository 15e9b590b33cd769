"""A state captured again: what ``capture`` would return, at the price of what has changed since.

From one boundary to the next a session's tree keeps its shape: cursors move, some tensors are bound anew, and most
leaves are the same objects over the same memory. What is remembered of the capture before is compared in a few passes
that run in C; a leaf that changed is read anew. Whatever else differs (another container, shape, stride, dtype, or
anything that would be refused) is left to ``capture`` itself, so that there is one account of what a state is.

Its memory is found first: whoever has work to begin on it need not wait until the values are read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from operator import is_, is_not, sub
from typing import Any, TypeVar

import numpy as np
import torch

from worldmove.errors import StateRefused
from worldmove.state import array
from worldmove.state.amended import amended
from worldmove.state.capture import Capture, DeviceStorage, Reader, Storage, capture, storage_at
from worldmove.state.digest import carried_over
from worldmove.state.known import Known, Places, Step, array_begin, items_of, keys_of, known_of
from worldmove.state.leaf import ArrayLeaf, Leaf
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import Manifest
from worldmove.state.memory import MemoryKit
from worldmove.state.tensor_facts import are_bare, are_plain, lie_as_before
from worldmove.state.tree import NO_TYPES

__all__ = ["Early", "Known", "exchanged", "recapture", "remember"]

T = TypeVar("T")
Early = Callable[[Capture], None]
"""Is given a state whose memory is found and whose values are those of before. What follows may find it of no use: it
is of use if the plan of the digests, ``plans``, is that of the capture in the end.
"""


def remember(tree: Any, types: Mapping[str, type] = NO_TYPES, kit: MemoryKit | None = None) -> Known:
    """Capture a state, and remember what the next capture is compared with. Raises StateRefused."""
    return known_of(capture(tree, types, kit), tree, types)


def recapture(known: Known, tree: Any, early: Early | None = None) -> Known:
    """Return exactly what ``remember`` would; what was prepared of ``known`` for digests goes over.

    ``early`` is called as soon as all memory is found; not, where all is read anew. Raises StateRefused.
    """
    kit, types = known.capture.kit, known.types
    again = _Again(known, tree)
    found = None
    if _asked(again.memory) is not None:
        if early is not None:
            early(again.capture)
        found = _asked(again.found)
    return remember(tree, types, kit) if found is None else found


def exchanged(known: Known, manifest: Manifest, values: Mapping[int, Any]) -> Known:
    """Return what is known of a tree in which some scalars, enums, and all generators are now these ``values``, as
    ``manifest`` has them, which has all else as before; ``known`` itself where they do not read as it says.
    """
    reader, leaves, now = _reader(known), manifest.leaves, list(known.values)
    for i, value in values.items():
        now[i] = value
        if reader.part(leaves[i].path, value) != leaves[i].content:
            return known
    if tuple(reader.records) != manifest.generators:
        return known
    state = replace(known.capture, manifest=manifest)
    return replace(known, capture=state, values=tuple(now), value_types=tuple(map(type, now)))


def _reader(known: Known) -> Reader:
    return Reader(enums={kind: name for name, kind in known.types.items()}, kit=known.capture.kit)


def _asked(question: Callable[[], T | None]) -> T | None:
    try:
        return question()
    except (StateRefused, RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None  # it is for capture to say what is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """Where everything lies now."""

    begins: list[int]
    addresses: Places


class _Again:
    """One comparison of a tree with what is known. Any None: that is for ``capture``."""

    def __init__(self, known: Known, tree: Any) -> None:
        self._known = known
        self._tree = tree
        self._values: tuple[Any, ...] = ()
        self._live: tuple[torch.Tensor, ...] = ()
        self._memory: _Memory | None = None
        self.capture = known.capture

    def memory(self) -> Capture | None:
        """Find all memory again: set ``capture`` to a state that has it, and the values of before."""
        known = self._known
        values = _leaves(known, self._tree)
        if values is None or tuple(map(type, values)) != known.value_types:
            return None
        self._values, self._live = values, known.tensors(values)
        begins = self._begins()
        if begins is None:
            return None
        new = np.fromiter(map(is_not, known.views(values), known.views(known.values)), dtype=np.bool_)
        if begins == known.begins and not new.any():
            self._memory = _Memory(begins=begins, addresses=known.addresses)
            return self.capture
        bases = self._bases(np.fromiter(map(sub, begins, known.begins), dtype=np.int64))
        if bases is None:
            return None
        self.capture = replace(known.capture, storages=self._storages(bases, new), plans=[])
        self.capture.plans.extend(carried_over(known.capture, bases - known.addresses))
        self._memory = _Memory(begins=begins, addresses=bases)
        return self.capture

    def found(self) -> Known | None:
        """Read the values, and return everything. After ``memory``."""
        known, reader = self._known, _reader(self._known)
        before = known.capture.manifest
        changed = self._changed(reader)
        assert self._memory is not None
        if changed is None or not are_bare(self._live, known.facts):
            return None
        if [record.kind for record in reader.records] != [record.kind for record in before.generators]:
            return None
        manifest = amended(before, changed, tuple(reader.records))
        if manifest is None:
            return None
        return replace(
            known,
            capture=replace(self.capture, manifest=manifest),
            values=self._values,
            begins=self._memory.begins,
            addresses=self._memory.addresses,
        )

    def _begins(self) -> list[int] | None:
        """Return where the memory of each tensor and array begins; None where one is not as it was."""
        known, live = self._known, self._live
        leaves = known.capture.manifest.leaves
        arrays = list(zip(known.arrays(self._values), known.arrays(leaves), strict=True))
        storages = list(map(torch.Tensor.untyped_storage, live))
        is_as_it_was = (
            lie_as_before(live, known.facts)
            and (known.facts.guard is not None or are_plain(live))
            and list(map(torch.UntypedStorage.nbytes, storages)) == known.num_bytes
            and all(_is_same_array(array, record) for array, record in arrays)
        )
        if not is_as_it_was:
            return None
        return list(map(torch.UntypedStorage.data_ptr, storages)) + [array_begin(array) for array, _ in arrays]

    def _storages(self, bases: Places, new: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Storage, ...]:
        """Return the live storages; those that have moved, or have new views, are other objects than before."""
        known, values, kit = self._known, self._values, self._known.capture.kit
        touched = bases != known.addresses
        viewed = known.owner[new]
        touched[viewed[viewed >= 0]] = True
        storages = list(known.capture.storages)
        records = known.capture.manifest.storages
        which = np.flatnonzero(touched).tolist()
        for index, address in zip(which, bases[touched].tolist(), strict=True):
            record, owners = records[index], known.viewed_by[index](values)
            if record.on_device and kit is not None:
                storages[index] = DeviceStorage(address, record.num_bytes, record.used, kit, owners)
            else:
                storages[index] = storage_at(address, record.num_bytes, owners, record, kit)
        return tuple(storages)

    def _bases(self, shift: Places) -> Places | None:
        """Return where each storage begins, if all its views moved together and none has come to lie over another."""
        known, held = self._known, self._known.owner >= 0
        steps = shift[known.first]
        if not np.array_equal(shift[held], steps[known.owner[held]]):
            return None
        bases: Places = known.addresses + steps
        order = np.argsort(bases, kind="stable")
        apart = bool((bases[order][1:] >= (bases + known.lengths)[order][:-1]).all())
        return bases if apart else None

    def _changed(self, reader: Reader) -> dict[int, Leaf] | None:
        """Read every generator, and each scalar that is another object; return the leaves that are not as they were."""
        known, values, changed = self._known, self._values, {}
        leaves = known.capture.manifest.leaves
        for i in compress(known.others.places, map(is_not, known.others(values), known.others(known.values))):
            leaf = reader.part(leaves[i].path, values[i])
            if leaf != leaves[i].content:
                changed[i] = leaf
        for i in known.generators.places:
            if reader.part(leaves[i].path, values[i]) != leaves[i].content:
                return None
        return changed  # type: ignore[return-value]


def _leaves(known: Known, tree: Any) -> tuple[Any, ...] | None:
    """Walk the tree; None where a container is not as it was."""
    nodes: list[Any] = [tree]
    for step in known.steps:
        containers = step.of(nodes)
        if list(map(type, containers)).count(step.kind) != len(containers):
            return None
        items = items_of(step.kind, containers)
        if list(map(len, items)) != step.lengths or not _has_keys(step, containers):
            return None
        nodes.extend(chain.from_iterable(items))
    mutable = list(map(id, known.mutable(nodes)))
    if len(frozenset(mutable)) != len(mutable) or len(nodes) != known.num_nodes:
        return None
    return known.order(nodes)


def _has_keys(step: Step, containers: Sequence[Any]) -> bool:
    """Compare keys in their order: ``True`` and ``1`` are not the same one."""
    keys = keys_of(step.kind, containers)
    return all(map(is_, keys, step.keys)) or (
        keys == step.keys and tuple(map(type, keys)) == tuple(map(type, step.keys))
    )


def _is_same_array(live: Any, record: LeafRecord) -> bool:
    leaf = record.content
    assert isinstance(leaf, ArrayLeaf)
    return array.array_leaf(array.check_array(record.path, live), live, leaf.storage, leaf.offset) == leaf
