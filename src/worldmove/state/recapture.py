"""A state captured again: what ``capture`` would return, at the price of what has changed since.

From one boundary to the next a session's tree keeps its shape: cursors move, some tensors are bound anew, and most
leaves are the same objects over the same memory. What is remembered of the capture before is compared in a few passes
that run in C; a leaf that changed is read anew. Whatever else differs (another container, shape, stride, dtype, or
anything that would be refused) is left to ``capture`` itself, so that there is one account of what a state is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

import msgspec
import numpy as np
import torch

from worldmove.errors import StateRefused
from worldmove.state import array
from worldmove.state.capture import Capture, Reader, Storage, capture, storage_at
from worldmove.state.frame import frame, peek
from worldmove.state.known import Known, Places, array_begin, known_of
from worldmove.state.leaf import ArrayLeaf, GeneratorRecord, Leaf
from worldmove.state.leaf_record import LeafRecord
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, Manifest
from worldmove.state.memory import MemoryKit
from worldmove.state.record import read_fields
from worldmove.state.tensor_facts import are_as_before, are_plain
from worldmove.state.tree import NO_TYPES

__all__ = ["Known", "recapture", "remember"]


def remember(tree: Any, types: Mapping[str, type] = NO_TYPES, kit: MemoryKit | None = None) -> Known:
    """Capture a state, and remember what the next capture is compared with. Raises StateRefused."""
    return known_of(capture(tree, types, kit), tree, types)


def recapture(known: Known, tree: Any) -> Known:
    """Return exactly what ``remember`` would. Raises StateRefused."""
    kit, types = known.capture.kit, known.types
    try:
        found = _Again(known, tree).found()
    except (StateRefused, RuntimeError, NotImplementedError, TypeError, AttributeError):
        found = None  # it is for capture to say what is wrong
    return remember(tree, types, kit) if found is None else found


class _Again:
    """One comparison of a tree with what is known. Any None: that is for ``capture``."""

    def __init__(self, known: Known, tree: Any) -> None:
        self._known = known
        self._tree = tree
        self._reader = Reader(enums={kind: name for name, kind in known.types.items()}, kit=known.capture.kit)

    def found(self) -> Known | None:
        known = self._known
        values = self._values()
        if values is None or tuple(map(type, values)) != known.value_types:
            return None
        begins = self._begins(values)
        if begins is None:
            return None
        live = self._storages(values, begins)
        changed = self._changed(values)
        if live is None or changed is None:
            return None
        records = tuple(self._reader.records)
        if [r.kind for r in records] != [r.kind for r in known.capture.manifest.generators]:
            return None
        return self._told(values, begins, live, self._manifest(changed, records), changed)

    def _values(self) -> tuple[Any, ...] | None:
        """Walk the tree; None where a container is not as it was."""
        nodes: list[Any] = [self._tree]
        for step in self._known.steps:
            node, kind, keys = nodes[step.at], step.kind, step.keys
            found: type = type(node)
            if found is not kind:
                return None
            if kind is dict:
                if len(node) != len(keys) or not (all(map(is_, node, keys)) or _are_equal(tuple(node), keys)):
                    return None
                nodes.extend(node.values())
            elif kind is list or kind is tuple:
                if len(node) != len(keys):
                    return None
                nodes.extend(node)
            else:
                nodes.extend(item for _, item in read_fields("", node))
        mutable = [id(nodes[at]) for at in self._known.mutable]
        if len(frozenset(mutable)) != len(mutable) or len(nodes) <= max(self._known.order, default=0):
            return None
        return tuple([nodes[at] for at in self._known.order])

    def _begins(self, values: Sequence[Any]) -> Places | None:
        """Return where the memory of each tensor and array begins; None where one is not as it was."""
        known = self._known
        live = [values[i] for i in known.tensors]
        arrays = [(values[i], known.capture.manifest.leaves[i]) for i in known.arrays]
        storages = list(map(torch.Tensor.untyped_storage, live))
        is_as_it_was = (
            are_as_before(live, known.facts)
            and are_plain([values[i] for i in known.tensors if values[i] is not known.values[i]])
            and list(map(torch.UntypedStorage.nbytes, storages)) == known.num_bytes
            and all(self._is_same_array(array, record) for array, record in arrays)
        )
        if not is_as_it_was:
            return None
        begins = list(map(torch.UntypedStorage.data_ptr, storages)) + [array_begin(array) for array, _ in arrays]
        return np.array(begins, dtype=np.int64)

    def _is_same_array(self, live: Any, record: LeafRecord) -> bool:
        leaf = record.content
        assert isinstance(leaf, ArrayLeaf)
        return array.array_leaf(array.check_array(record.path, live), live, leaf.storage, leaf.offset) == leaf

    def _storages(self, values: Sequence[Any], begins: Places) -> tuple[tuple[Storage, ...], Places] | None:
        """Return the live storages, and where they begin; None where memory is shared otherwise than before."""
        known = self._known
        kept = list(map(is_, [values[i] for i in known.views], [known.values[i] for i in known.views]))
        if all(kept) and np.array_equal(begins, known.begins):
            return known.capture.storages, known.addresses
        bases = self._bases(begins)
        if bases is None:
            return None
        touched = bases != known.addresses
        new = known.owner[~np.array(kept, dtype=bool)]
        touched[new[new >= 0]] = True
        storages = list(known.capture.storages)
        for which in np.flatnonzero(touched).tolist():
            owners = [values[i] for i in known.viewed_by[which]]
            record = known.capture.manifest.storages[which]
            storages[which] = storage_at(int(bases[which]), record.num_bytes, owners, record, known.capture.kit)
        return tuple(storages), bases

    def _bases(self, begins: Places) -> Places | None:
        """Return where each storage begins, if all its views moved together and none has come to lie over another."""
        known = self._known
        shift, held = begins - known.begins, known.owner >= 0
        if not np.array_equal(shift[held], shift[known.first][known.owner[held]]):
            return None
        bases: Places = known.addresses + shift[known.first]
        order = np.argsort(bases, kind="stable")
        apart = bool((bases[order][1:] >= (bases + known.lengths)[order][:-1]).all())
        return bases if apart else None

    def _changed(self, values: Sequence[Any]) -> dict[int, Leaf] | None:
        """Read every generator, and each scalar that is another object; return the leaves that are not as they were."""
        known, changed = self._known, {}
        leaves = known.capture.manifest.leaves
        for i in known.others:
            if values[i] is not known.values[i]:
                leaf = self._reader.part(leaves[i].path, values[i])
                if leaf != leaves[i].content:
                    changed[i] = leaf
        for i in known.generators:
            if self._reader.part(leaves[i].path, values[i]) != leaves[i].content:
                return None
        return changed  # type: ignore[return-value]

    def _manifest(self, changed: Mapping[int, Leaf], records: tuple[GeneratorRecord, ...]) -> Manifest | None:
        before = self._known.capture.manifest
        if not changed and records == before.generators:
            return before
        leaves, chunks = list(before.leaves), list(self._known.chunks)
        encode = msgspec.msgpack.Encoder().encode
        for i, leaf in changed.items():
            leaves[i] = LeafRecord(path=leaves[i].path, content=leaf)
            chunks[i] = encode(leaf)
        head = b"\x93", self._known.structure, _array_head(len(chunks))
        body = b"".join((*head, *chunks, encode(records)))
        encoded = frame(MANIFEST_MAGIC, peek(before.encoded)[1], body)
        if len(encoded) > MAX_MANIFEST_BYTES:
            return None
        return Manifest(
            structure=before.structure,
            leaves=tuple(leaves),
            storages=before.storages,
            generators=records,
            encoded=encoded,
        )

    def _told(
        self,
        values: tuple[Any, ...],
        begins: Places,
        live: tuple[tuple[Storage, ...], Places],
        manifest: Manifest | None,
        changed: Mapping[int, Leaf],
    ) -> Known | None:
        known = self._known
        if manifest is None:
            return None
        chunks = known.chunks
        if changed:
            encode = msgspec.msgpack.Encoder().encode
            chunks = tuple([encode(changed[i]) if i in changed else chunk for i, chunk in enumerate(chunks)])
        storages, addresses = live
        kept = storages is known.capture.storages
        state = Capture(
            manifest=manifest, storages=storages, kit=known.capture.kit, plans=known.capture.plans if kept else []
        )
        return replace(known, capture=state, values=values, begins=begins, addresses=addresses, chunks=chunks)


def _are_equal(keys: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Compare keys: ``True`` and ``1`` are not the same one."""
    return keys == others and tuple(map(type, keys)) == tuple(map(type, others))


def _array_head(count: int) -> bytes:
    """Return what msgpack writes before an array's items."""
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
