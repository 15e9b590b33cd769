"""A state captured again: what ``capture`` would return, at the price of what has changed since.

From one boundary to the next a session's tree keeps its shape: cursors move, some tensors are bound anew, and most
leaves are the same objects over the same memory. What is remembered of the capture before is compared in a few passes
that run in C; a leaf that changed is read anew. Whatever else differs (another container, shape, stride, dtype, or
anything that would be refused) is left to ``capture`` itself, so that there is one account of what a state is.

Its memory is found first: whoever has work to begin on it need not wait until the values are read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, compress
from operator import is_, is_not
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from worldmove.errors import StateRefused
from worldmove.state import array
from worldmove.state.amended import amended
from worldmove.state.capture import Capture, DeviceStorage, Reader, Storage, capture, storage_at
from worldmove.state.device_digests import carried_over
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.known import Form, Known, Step, begins_of, items_of, keys_of, known_of
from worldmove.state.leaf import ArrayLeaf, Leaf
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import Manifest
from worldmove.state.memory import MemoryKit
from worldmove.state.tensor_facts import are_bare, are_equal, lie_as_before, numbers
from worldmove.state.tree import NO_TYPES

__all__ = ["Early", "Known", "exchanged", "recapture", "recapture_begun", "remember"]

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


def recapture_begun(known: Known, state: Callable[[], Any], begin: BeginPass) -> tuple[Capture, Pass]:
    """Begin a pass over the memory that is known, and resolve the state meanwhile: the device reads beside it.

    The pass is of the capture that is returned: where its memory turns out to be another, it is begun anew.
    """
    before = known.capture
    begun, lent = begin(before), [*before.plans]
    before.plans.clear()  # what the device is reading by is not changed
    captured = recapture(known, state()).capture
    if captured.lies_as(before):
        captured.plans[:] = lent
        return captured, begun
    begun.joined()
    return captured, begin(captured)


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
    return replace(
        known, capture=known.capture.with_values(manifest), values=tuple(now), value_types=tuple(map(type, now))
    )


def _reader(known: Known) -> Reader:
    return Reader(enums={kind: name for name, kind in known.types.items()}, kit=known.capture.kit)


def _asked(question: Callable[[], T | None]) -> T | None:
    try:
        return question()
    except (StateRefused, RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None  # it is for capture to say what is wrong


class _Again:
    """One comparison of a tree with what is known. Any None: that is for ``capture``."""

    def __init__(self, known: Known, tree: Any) -> None:
        self._known = known
        self._tree = tree
        self._values: tuple[Any, ...] = ()
        self._is_new: list[bool] = []
        self._live: tuple[torch.Tensor, ...] = ()
        self._begins = known.begins
        self._addresses = known.addresses
        self.capture = known.capture

    def memory(self) -> Capture | None:
        """Find all memory again: set ``capture`` to a state that has it, and the values of before."""
        known, form = self._known, self._known.form
        values = _leaves(form, self._tree)
        if values is None or tuple(map(type, values)) != known.value_types:
            return None
        self._values, self._is_new = values, list(map(is_not, values, known.values))
        self._live = form.tensors(values)
        if not self._lie_as_before():
            return None
        is_new = form.views(self._is_new)
        if True in is_new or not are_equal(self._begins, known.begins):
            return self._moved(np.array(is_new))
        return self.capture

    def found(self) -> Known | None:
        """Read the values, and return everything. After ``memory``."""
        known, reader = self._known, _reader(self._known)
        before = known.capture.manifest
        changed = self._changed(reader)
        if changed is None or not are_bare(self._live, known.form.facts):
            return None
        if [record.kind for record in reader.records] != [record.kind for record in before.generators]:
            return None
        manifest = amended(before, changed, tuple(reader.records))
        if manifest is None:
            return None
        return replace(
            known,
            capture=self.capture.with_values(manifest),
            values=self._values,
            begins=self._begins,
            addresses=self._addresses,
        )

    def _lie_as_before(self) -> bool:
        """Find where the memory of each tensor and array begins; False where one is not as it was."""
        known, live, form = self._known, self._live, self._known.form
        arrays = form.arrays(self._values)
        storages = list(map(torch.Tensor.untyped_storage, live))
        is_as_it_was = (
            lie_as_before(live, form.facts)
            and are_equal(numbers(map(torch.UntypedStorage.nbytes, storages)), form.num_bytes)
            and all(map(_is_same_array, arrays, form.arrays(known.capture.manifest.leaves)))
        )
        if is_as_it_was:
            self._begins = begins_of(storages, arrays)
        return is_as_it_was

    def _moved(self, is_new: NDArray[np.bool_]) -> Capture | None:
        """Return the capture with storages that lie elsewhere or have new views, if all views of each moved together
        and none has come to lie over another.
        """
        known, form = self._known, self._known.form
        shift = self._begins - known.begins
        steps = shift[form.first]
        bases = self._addresses = known.addresses + steps
        order = np.argsort(bases, kind="stable")
        ends = (bases + form.lengths)[order]
        if not are_equal(shift[form.placed], steps[form.owner]) or (bases[order][1:] < ends[:-1]).any():
            return None
        touched = steps != 0
        touched[form.owner[is_new[form.placed]]] = True
        self.capture = replace(known.capture, storages=self._storages(touched), plans=[])
        vars(self.capture)["addresses"] = bases
        self.capture.plans.extend(carried_over(known.capture, steps))
        return self.capture

    def _storages(self, touched: NDArray[np.bool_]) -> tuple[Storage, ...]:
        """Return the live storages, where those that were touched are other objects than before."""
        known, values, kit = self._known, self._values, self._known.capture.kit
        storages = list(known.capture.storages)
        records, viewed_by = known.capture.manifest.storages, known.form.viewed_by
        for index, address in zip(touched.nonzero()[0].tolist(), self._addresses[touched].tolist(), strict=True):
            record, owners = records[index], viewed_by[index](values)
            if record.on_device and kit is not None:
                storages[index] = DeviceStorage(address, record.num_bytes, record.used, kit, owners)
            else:
                storages[index] = storage_at(address, record.num_bytes, owners, record, kit)
        return tuple(storages)

    def _changed(self, reader: Reader) -> dict[int, Leaf] | None:
        """Read every generator, and each scalar that is another object; return the leaves that are not as they were."""
        known, values, changed = self._known, self._values, {}
        leaves, form = known.capture.manifest.leaves, known.form
        for i in compress(form.others.places, form.others(self._is_new)):
            leaf = reader.part(leaves[i].path, values[i])
            if leaf != leaves[i].content:
                changed[i] = leaf
        for i in form.generators.places:
            if reader.part(leaves[i].path, values[i]) != leaves[i].content:
                return None
        return changed  # type: ignore[return-value]


def _leaves(form: Form, tree: Any) -> tuple[Any, ...] | None:
    """Walk the tree; None where a container is not as it was."""
    nodes: list[Any] = [tree]
    for step in form.steps:
        containers = step.of(nodes)
        if list(map(type, containers)).count(step.kind) != len(containers):
            return None
        items = items_of(step.kind, containers)
        if list(map(len, items)) != step.lengths or not _has_keys(step, containers):
            return None
        nodes.extend(chain.from_iterable(items))
    mutable = list(map(id, form.mutable(nodes)))
    if len(frozenset(mutable)) != len(mutable) or len(nodes) != form.num_nodes:
        return None
    return form.order(nodes)


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
