"""What is remembered of a capture, so that the next one of the same session is cheap (``recapture``)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import torch

from worldmove.state.capture import Capture
from worldmove.state.geometry import bounds
from worldmove.state.leaf import ArrayLeaf, GeneratorLeaf, TensorLeaf
from worldmove.state.record import read_fields
from worldmove.state.tensor_facts import Facts, Numbers, facts_of, numbers
from worldmove.state.tree import is_container

Places = Numbers


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
class Form:
    """What of a state is the same at the next boundary, or all of it is read anew."""

    steps: tuple[Step, ...]
    num_nodes: int
    mutable: Pick
    order: Pick
    """Where among the nodes each leaf is."""
    tensors: Pick
    """Which leaves are tensors, and so on."""
    arrays: Pick
    views: Pick
    """Tensors, then arrays."""
    generators: Pick
    others: Pick
    facts: Facts
    num_bytes: Places
    """Of each tensor's own storage."""
    held: list[torch.UntypedStorage]
    """These storages: torch gives out an object that exists sooner than a new one."""
    placed: Places
    """Which of the views lie in a storage of the state: not those without a byte."""
    owner: Places
    """Which storage each of those lies in."""
    lengths: Places
    """Of each storage; and which is the first of the views that lie in it."""
    first: Places
    viewed_by: tuple[Callable[[Sequence[Any]], Any], ...]
    """Of each storage, what takes its views out of the values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A capture, and what makes the next one cheap."""

    capture: Capture
    types: Mapping[str, type]
    form: Form
    values: tuple[Any, ...]
    value_types: tuple[type, ...]
    begins: Places
    """Where each tensor's storage begins; then where each array's memory does."""
    addresses: Places
    """Where each storage begins."""


def known_of(state: Capture, tree: Any, types: Mapping[str, type]) -> Known:
    """Return what makes the next capture of a session cheap. ``tree`` is the one that was captured."""
    state.manifest.prepared()
    steps, order, nodes = _program(tree)
    values = tuple([nodes[at] for at in order])
    form = _form_of(state, steps, order, len(nodes), values)
    return Known(
        capture=state,
        types=types,
        form=form,
        values=values,
        value_types=tuple(map(type, values)),
        begins=begins_of(form.held, [values[i] for i in form.arrays.places]),
        addresses=state.addresses,
    )


def _form_of(
    state: Capture, steps: Sequence[Step], order: Sequence[int], num_nodes: int, values: Sequence[Any]
) -> Form:
    """Return how a tree of these values is walked, and what is read of it where."""
    leaves = [leaf.content for leaf in state.manifest.leaves]
    tensors, arrays, generators = (
        tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, kind))
        for kind in (TensorLeaf, ArrayLeaf, GeneratorLeaf)
    )
    read = {*tensors, *arrays, *generators}
    live = [values[i] for i in tensors]
    storages = [tensor.untyped_storage() for tensor in live]
    storage_of = [leaves[i].storage for i in (*tensors, *arrays)]  # type: ignore[union-attr]
    placed = [at for at, which in enumerate(storage_of) if which is not None]
    return Form(
        steps=tuple(steps),
        num_nodes=num_nodes,
        mutable=Pick([at for step in steps if not issubclass(step.kind, tuple) for at in step.of.places]),
        order=Pick(order),
        tensors=Pick(tensors),
        arrays=Pick(arrays),
        views=Pick((*tensors, *arrays)),
        generators=Pick(generators),
        others=Pick([i for i in range(len(values)) if i not in read]),
        facts=facts_of(live),
        num_bytes=numbers(storage.nbytes() for storage in storages),
        held=storages,
        placed=numbers(placed),
        owner=numbers(storage_of[at] for at in placed),  # type: ignore[misc]
        lengths=numbers(storage.num_bytes for storage in state.storages),
        first=numbers(storage_of.index(which) for which in range(len(state.storages))),
        viewed_by=_viewed_by(zip((*tensors, *arrays), storage_of, strict=True), len(state.storages)),
    )


def begins_of(storages: Sequence[torch.UntypedStorage], arrays: Sequence[Any]) -> Places:
    """Return where the memory of each begins."""
    return numbers(chain(map(torch.UntypedStorage.data_ptr, storages), map(_array_begin, arrays)))


def _viewed_by(
    pairs: Iterable[tuple[int, int | None]], num_storages: int
) -> tuple[Callable[[Sequence[Any]], Any], ...]:
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


def _array_begin(live: Any) -> int:
    return bounds(int(live.ctypes.data), live.itemsize, live.shape, live.strides)[0]
