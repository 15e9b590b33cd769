"""A state captured again: what ``capture`` would return, at the price of what has changed since.

From one boundary to the next a session's tree keeps its shape: cursors move, some tensors are bound anew, and most
leaves are the same objects over the same memory. What is remembered of the capture before is compared in a few passes
that run in C; a leaf that changed is read anew. Whatever else differs (another container, shape, stride, dtype, or
anything that would be refused) is left to ``capture`` itself, so that there is one account of what a state is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, is_
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd import forward_ad

from worldmove.errors import StateRefused
from worldmove.state import array
from worldmove.state.capture import Capture, Reader, Storage, capture, storage_at
from worldmove.state.frame import frame, peek
from worldmove.state.geometry import bounds
from worldmove.state.leaf import ArrayLeaf, GeneratorLeaf, GeneratorRecord, Leaf, TensorLeaf
from worldmove.state.manifest import MANIFEST_MAGIC, MAX_MANIFEST_BYTES, LeafRecord, Manifest
from worldmove.state.memory import MemoryKit
from worldmove.state.record import read_fields
from worldmove.state.tree import NO_TYPES, is_container

_tensor = torch.Tensor
_FACTS: tuple[Callable[[torch.Tensor], Any], ...] = (
    _tensor.size,
    _tensor.stride,
    _tensor.storage_offset,
    _tensor.is_neg,
    _tensor.is_conj,
    attrgetter("dtype"),
    attrgetter("device"),
)
"""What can change about a tensor that is the same object as before, but for where its storage lies: whoever sets its
``data`` exchanges all of it."""
_EMPTY = (
    *map(attrgetter, ("requires_grad", "__dict__", "_backward_hooks", "_post_accumulate_grad_hooks")),
    *filter(None, [getattr(_tensor, "has_names", None)]),  # torch 2.13 has no named tensors any more
)
"""What no tensor of a state has. Not compared with what was: the objects are the same, and may have been filled."""
_gradient, _layout, _is_nested = map(attrgetter, ("grad", "layout", "is_nested"))

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One container of the walk: where it is among the nodes, its type, and its keys or its length."""

    at: int
    kind: type
    keys: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A capture, and what makes the next one cheap."""

    capture: Capture
    types: Mapping[str, type]
    steps: tuple[_Step, ...]
    mutable: tuple[int, ...]
    order: tuple[int, ...]
    """Where among the nodes each leaf is."""
    values: tuple[Any, ...]
    value_types: tuple[type, ...]
    tensors: tuple[int, ...]
    """Which leaves are tensors, and so on."""
    arrays: tuple[int, ...]
    generators: tuple[int, ...]
    others: tuple[int, ...]
    facts: tuple[list[Any], ...]
    num_bytes: list[int]
    """Of each tensor's own storage."""
    begins: Places
    """Where each tensor's storage begins; then where each array's memory does."""
    addresses: Places
    """Where each storage begins."""
    owner: Places
    """Which storage each of these lies in, or -1; the storages' lengths, and each one's first view."""
    lengths: Places
    first: Places
    viewed_by: tuple[tuple[int, ...], ...]
    """Of each storage, the leaves that view it."""
    structure: bytes
    chunks: tuple[bytes, ...]
    """The containers, and each leaf, encoded."""

    @property
    def views(self) -> tuple[int, ...]:
        """Tensors, then arrays."""
        return self.tensors + self.arrays


def remember(tree: Any, types: Mapping[str, type] = NO_TYPES, kit: MemoryKit | None = None) -> Known:
    """Capture a state, and remember what the next capture is compared with. Raises StateRefused."""
    return _known(capture(tree, types, kit), tree, types)


def recapture(known: Known, tree: Any) -> Known:
    """Return exactly what ``remember`` would. Raises StateRefused."""
    kit, types = known.capture.kit, known.types
    try:
        found = _Again(known, tree).found()
    except (StateRefused, RuntimeError, NotImplementedError, TypeError, AttributeError):
        found = None  # it is for capture to say what is wrong
    return remember(tree, types, kit) if found is None else found


def _known(state: Capture, tree: Any, types: Mapping[str, type]) -> Known:
    steps, order, nodes = _program(tree)
    values = tuple(nodes[at] for at in order)
    leaves = [leaf.content for leaf in state.manifest.leaves]
    tensors = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorLeaf))
    arrays = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, ArrayLeaf))
    generators = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, GeneratorLeaf))
    read = {*tensors, *arrays, *generators}
    live = [values[i] for i in tensors]
    storages = [tensor.untyped_storage() for tensor in live]
    begins = [s.data_ptr() for s in storages] + [_array_begin(values[i]) for i in arrays]
    encode = msgspec.msgpack.Encoder().encode
    storage_of = [leaves[i].storage for i in (*tensors, *arrays)]  # type: ignore[union-attr]
    owner = np.array([-1 if which is None else which for which in storage_of], dtype=np.int64)
    return Known(
        capture=state,
        types=types,
        steps=tuple(steps),
        mutable=tuple(step.at for step in steps if not issubclass(step.kind, tuple)),
        order=tuple(order),
        values=values,
        value_types=tuple(map(type, values)),
        tensors=tensors,
        arrays=arrays,
        generators=generators,
        others=tuple(i for i in range(len(values)) if i not in read),
        facts=tuple([list(map(fact, live)) for fact in _FACTS]),
        num_bytes=[s.nbytes() for s in storages],
        begins=np.array(begins, dtype=np.int64),
        addresses=np.array([storage.address for storage in state.storages], dtype=np.int64),
        owner=owner,
        lengths=np.array([storage.num_bytes for storage in state.storages], dtype=np.int64),
        first=np.array([storage_of.index(which) for which in range(len(state.storages))], dtype=np.int64),
        viewed_by=_viewed_by(zip((*tensors, *arrays), storage_of, strict=True), len(state.storages)),
        structure=encode(state.manifest.structure),
        chunks=tuple(encode(leaf) for leaf in leaves),
    )


def _viewed_by(pairs: Iterable[tuple[int, int | None]], num_storages: int) -> tuple[tuple[int, ...], ...]:
    found: list[list[int]] = [[] for _ in range(num_storages)]
    for leaf, storage in pairs:
        if storage is not None:
            found[storage].append(leaf)
    return tuple(tuple(each) for each in found)


def _program(tree: Any) -> tuple[list[_Step], list[int], list[Any]]:
    """Return the containers level by level, where the leaves are in the order of ``flatten``, and all nodes."""
    nodes, steps, first = [tree], [], {}
    for at, node in enumerate(nodes):
        if is_container(type(node)):
            keys, items = _opened(node)
            steps.append(_Step(at=at, kind=type(node), keys=keys))
            first[at] = range(len(nodes), len(nodes) + len(items))
            nodes.extend(items)
    return steps, list(_leaves(0, first)), nodes


def _leaves(at: int, first: Mapping[int, range]) -> Iterator[int]:
    if at not in first:
        yield at
        return
    for child in first[at]:
        yield from _leaves(child, first)


def _opened(node: Any) -> tuple[tuple[Any, ...], Sequence[Any]]:
    if type(node) is dict:
        return tuple(node), list(node.values())
    if type(node) in (list, tuple):
        return (None,) * len(node), node
    fields = read_fields("", node)
    return tuple(name for name, _ in fields), [item for _, item in fields]


def _array_begin(live: Any) -> int:
    return bounds(int(live.ctypes.data), live.itemsize, live.shape, live.strides)[0]


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
        storages = list(map(_tensor.untyped_storage, live))
        is_as_it_was = (
            all(list(map(fact, live)) == before for fact, before in zip(_FACTS, known.facts, strict=True))
            and not any(any(map(fact, live)) for fact in _EMPTY)
            and list(map(_gradient, live)).count(None) == len(live)
            and forward_ad._current_level < 0  # only within a level may a tensor have a tangent
            and _are_plain([values[i] for i in known.tensors if values[i] is not known.values[i]])
            and list(map(torch.UntypedStorage.nbytes, storages)) == known.num_bytes
            and all(self._is_same_array(array, record) for array, record in arrays)
        )
        if not is_as_it_was:
            return None
        begins = list(map(torch.UntypedStorage.data_ptr, storages)) + [_array_begin(array) for array, _ in arrays]
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


def _are_plain(tensors: Sequence[torch.Tensor]) -> bool:
    """Check tensors that are other objects than before, beside what is compared of each: their dtype is a carried one,
    and by device and size of storage they lie where the others lay.
    """
    return (
        list(map(_layout, tensors)).count(torch.strided) == len(tensors)
        and not any(map(_is_nested, tensors))
        and not any(map(_tensor._is_zerotensor, tensors))
    )


def _are_equal(keys: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Compare keys: ``True`` and ``1`` are not the same one."""
    return keys == others and tuple(map(type, keys)) == tuple(map(type, others))


def _array_head(count: int) -> bytes:
    """Return what msgpack writes before an array's items."""
    if count < 16:
        return bytes([0x90 | count])
    return b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
