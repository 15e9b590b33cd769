"""What is remembered of a capture, so that the next one of the same session is cheap (``recapture``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from worldmove.state.capture import Capture
from worldmove.state.geometry import bounds
from worldmove.state.leaf import ArrayLeaf, GeneratorLeaf, TensorLeaf
from worldmove.state.record import read_fields
from worldmove.state.tensor_facts import Facts, facts_of
from worldmove.state.tree import is_container

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One container of the walk: where it is among the nodes, its type, and its keys or its length."""

    at: int
    kind: type
    keys: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A capture, and what makes the next one cheap."""

    capture: Capture
    types: Mapping[str, type]
    steps: tuple[Step, ...]
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
    facts: Facts
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


def known_of(state: Capture, tree: Any, types: Mapping[str, type]) -> Known:
    """Return what makes the next capture of a session cheap. ``tree`` is the one that was captured."""
    steps, order, nodes = _program(tree)
    values = tuple(nodes[at] for at in order)
    leaves = [leaf.content for leaf in state.manifest.leaves]
    tensors = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorLeaf))
    arrays = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, ArrayLeaf))
    generators = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, GeneratorLeaf))
    read = {*tensors, *arrays, *generators}
    live = [values[i] for i in tensors]
    storages = [tensor.untyped_storage() for tensor in live]
    begins = [s.data_ptr() for s in storages] + [array_begin(values[i]) for i in arrays]
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
        facts=facts_of(live),
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


def _program(tree: Any) -> tuple[list[Step], list[int], list[Any]]:
    """Return the containers level by level, where the leaves are in the order of ``flatten``, and all nodes."""
    nodes, steps, first = [tree], [], {}
    for at, node in enumerate(nodes):
        if is_container(type(node)):
            keys, items = _opened(node)
            steps.append(Step(at=at, kind=type(node), keys=keys))
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


def array_begin(live: Any) -> int:
    """Return where the memory of an array begins."""
    return bounds(int(live.ctypes.data), live.itemsize, live.shape, live.strides)[0]
