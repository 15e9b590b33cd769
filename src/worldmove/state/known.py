"""What is remembered of a capture, so that the next one of the same session is cheap (``recapture``)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import torch
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
    """The containers of one type at one depth of the walk: which nodes they are, and their lengths.

    Of dicts, all keys in a row; of records, none.
    """

    of: "Pick"
    kind: type
    lengths: list[int]
    keys: tuple[Any, ...]


class Pick:
    """Takes the items at some places out of a sequence, in C."""

    __slots__ = ("_get", "places")

    def __init__(self, places: Sequence[int]) -> None:
        self.places = tuple(places)
        self._get = itemgetter(*self.places) if len(self.places) > 1 else None

    def __call__(self, items: Sequence[Any]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = tuple([items[at] for at in self.places]) if self._get is None else self._get(items)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A capture, and what makes the next one cheap."""

    capture: Capture
    types: Mapping[str, type]
    steps: tuple[Step, ...]
    num_nodes: int
    mutable: Pick
    order: Pick
    """Where among the nodes each leaf is."""
    values: tuple[Any, ...]
    value_types: tuple[type, ...]
    tensors: Pick
    """Which leaves are tensors, and so on."""
    arrays: Pick
    views: Pick
    """Tensors, then arrays."""
    generators: Pick
    others: Pick
    facts: Facts
    num_bytes: list[int]
    """Of each tensor's own storage."""
    held: list[torch.UntypedStorage]
    """These storages: torch gives out an object that exists sooner than a new one."""
    begins: list[int]
    """Where each tensor's storage begins; then where each array's memory does."""
    addresses: Places
    """Where each storage begins."""
    owner: Places
    """Which storage each of these lies in, or -1; the storages' lengths, and each one's first view."""
    lengths: Places
    first: Places
    viewed_by: tuple[Callable[[Sequence[Any]], Any], ...]
    """Of each storage, what takes its views out of the values."""


def known_of(state: Capture, tree: Any, types: Mapping[str, type]) -> Known:
    """Return what makes the next capture of a session cheap. ``tree`` is the one that was captured."""
    state.manifest.prepared()
    steps, order, nodes = _program(tree)
    values = tuple([nodes[at] for at in order])
    leaves = [leaf.content for leaf in state.manifest.leaves]
    tensors = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, TensorLeaf))
    arrays = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, ArrayLeaf))
    generators = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, GeneratorLeaf))
    read = {*tensors, *arrays, *generators}
    live = [values[i] for i in tensors]
    storages = [tensor.untyped_storage() for tensor in live]
    begins = [s.data_ptr() for s in storages] + [array_begin(values[i]) for i in arrays]
    storage_of = [leaves[i].storage for i in (*tensors, *arrays)]  # type: ignore[union-attr]
    owner = np.array([-1 if which is None else which for which in storage_of], dtype=np.int64)
    return Known(
        capture=state,
        types=types,
        steps=tuple(steps),
        num_nodes=len(nodes),
        mutable=Pick([at for step in steps if not issubclass(step.kind, tuple) for at in step.of.places]),
        order=Pick(order),
        values=values,
        value_types=tuple(map(type, values)),
        tensors=Pick(tensors),
        arrays=Pick(arrays),
        views=Pick((*tensors, *arrays)),
        generators=Pick(generators),
        others=Pick([i for i in range(len(values)) if i not in read]),
        facts=facts_of(live),
        num_bytes=[s.nbytes() for s in storages],
        held=storages,
        begins=begins,
        addresses=np.array([storage.address for storage in state.storages], dtype=np.int64),
        owner=owner,
        lengths=np.array([storage.num_bytes for storage in state.storages], dtype=np.int64),
        first=np.array([storage_of.index(which) for which in range(len(state.storages))], dtype=np.int64),
        viewed_by=_viewed_by(zip((*tensors, *arrays), storage_of, strict=True), len(state.storages)),
    )


def _viewed_by(pairs: Iterable[tuple[int, int | None]], num_storages: int) -> tuple[Callable[[Sequence[Any]], Any], ...]:
    found: list[list[int]] = [[] for _ in range(num_storages)]
    for leaf, storage in pairs:
        if storage is not None:
            found[storage].append(leaf)
    return tuple(itemgetter(*each) for each in found)


def _program(tree: Any) -> tuple[list[Step], list[int], list[Any]]:
    """Return the containers depth by depth and kind by kind, where the leaves are in the order of ``flatten``, and all
    nodes.
    """
    nodes, steps, first, level = [tree], [], {}, range(1)
    while level:
        begin = len(nodes)
        for kind in dict.fromkeys(type(nodes[at]) for at in level if is_container(type(nodes[at]))):
            of = Pick([at for at in level if type(nodes[at]) is kind])
            found = items_of(kind, of(nodes))
            lengths = list(map(len, found))
            for at, items in zip(of.places, found, strict=True):
                first[at] = range(len(nodes), len(nodes) + len(items))
                nodes.extend(items)
            steps.append(Step(of=of, kind=kind, lengths=lengths, keys=keys_of(kind, of(nodes))))
        level = range(begin, len(nodes))
    return steps, list(_leaves(0, first)), nodes


def _leaves(at: int, first: Mapping[int, range]) -> Iterator[int]:
    if at not in first:
        yield at
        return
    for child in first[at]:
        yield from _leaves(child, first)


def items_of(kind: type, containers: Sequence[Any]) -> Sequence[Any]:
    """Return what is in each of some containers of one type. Raises StateRefused for a record with more than fields."""
    if kind is dict:
        return list(map(dict.values, containers))
    if kind is list or kind is tuple:
        return containers
    return [[item for _, item in read_fields("", record)] for record in containers]


def keys_of(kind: type, containers: Sequence[Any]) -> tuple[Any, ...]:
    """Return the keys of dicts, all in a row."""
    return tuple(chain.from_iterable(containers)) if kind is dict else ()


def array_begin(live: Any) -> int:
    """Return where the memory of an array begins."""
    return bounds(int(live.ctypes.data), live.itemsize, live.shape, live.strides)[0]
