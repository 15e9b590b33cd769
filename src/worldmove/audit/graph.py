"""What a walk found, as plain records that two processes can compare; and the comparison.

Two graphs are compared from their roots, along equal labels, both at once. Objects have no identity there but the
way to them, so nothing depends on addresses, and a cycle or a shared object is compared once.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from worldmove.audit.trail import within


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One object. ``parent`` is where the walk came from first; ``parts`` are label and number of each part."""

    path: str
    kind: str
    value: str
    num_bytes: int
    """Its own, without its parts."""
    parent: int
    whole: bool
    """Compared as one thing where its labels differ: a list that grew, and not its new items, was changed."""
    parts: tuple[tuple[str, int], ...]


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """All that was reached. The first nodes are the roots. ``complete``: the walk did not end at its limit."""

    nodes: list[Node]
    num_roots: int
    complete: bool = True


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A path at which two graphs differ, said from both sides."""

    path: str
    kind: str
    there: str
    here: str
    num_bytes: int


ABSENT = "not there"
GENERATORS = "the process's generator: "
"""How the paths begin of the generators that all of a process shares."""
CACHE = "functools cache"
CACHE_PATH = "cache of "
"""How the paths of what a cache of functools holds begin."""


def differing(there: Graph, here: Graph) -> list[Place]:
    """Return where two graphs differ, each path once, the shortest ways first. Sizes are those of ``there``."""
    found: dict[str, Place] = {}
    for place in _Comparison(there, here).places():
        found.setdefault(place.path, place)
    return list(found.values())


def related(path: str, other: str) -> bool:
    """Say whether one path is the other, or leads to it."""
    return within(path, other) or within(other, path)


def related_to_any(path: str, places: Sequence[Place]) -> bool:
    """Say whether one of the places lies on the way to a path, at it, or below it."""
    return any(related(path, place.path) for place in places)


class _Comparison:
    def __init__(self, there: Graph, here: Graph) -> None:
        self._there = there.nodes
        self._here = here.nodes
        self._sizes = sizes(there)
        roots = [{node.path: i for i, node in enumerate(g.nodes[: g.num_roots])} for g in (there, here)]
        self._queue = deque((roots[0][path], roots[1][path]) for path in roots[0] if path in roots[1])
        self._lonely = [i for path, i in roots[0].items() if path not in roots[1]]
        self._seen = set(self._queue)

    def places(self) -> Iterator[Place]:
        for index in self._lonely:
            yield self._only_there(index)
        while self._queue:
            yield from self._pair(*self._queue.popleft())

    def _pair(self, one: int, other: int) -> Iterator[Place]:
        there, here = self._there[one], self._here[other]
        labels = [dict(node.parts) for node in (there, here)]
        if (there.kind, there.value) != (here.kind, here.value) or (
            there.whole and labels[0].keys() != labels[1].keys()
        ):
            yield self._place(there.path, there.kind, say(there), say(here), self._sizes[one])
            return
        for label in {**labels[0], **labels[1]}:
            if label not in labels[1]:
                yield self._only_there(labels[0][label])
            elif label not in labels[0]:
                node = self._here[labels[1][label]]
                yield self._place(node.path, node.kind, ABSENT, say(node), 0)
            elif (pair := (labels[0][label], labels[1][label])) not in self._seen:
                self._seen.add(pair)
                self._queue.append(pair)

    def _only_there(self, index: int) -> Place:
        node = self._there[index]
        return self._place(node.path, node.kind, say(node), ABSENT, self._sizes[index])

    def _place(self, path: str, kind: str, there: str, here: str, num_bytes: int) -> Place:
        return Place(path=path, kind=kind, there=there, here=here, num_bytes=num_bytes)


def sizes(graph: Graph) -> list[int]:
    """Return the bytes of each node, with those of all that was reached through it first."""
    totals = [node.num_bytes for node in graph.nodes]
    for index in range(len(graph.nodes) - 1, graph.num_roots - 1, -1):
        totals[graph.nodes[index].parent] += totals[index]
    return totals


def say(node: Node) -> str:
    """Return what an object is, in a few words."""
    if node.value:
        return node.value if len(node.value) <= 60 else f"{node.value[:57]}..."
    return f"{len(node.parts)} items" if node.whole else node.kind
