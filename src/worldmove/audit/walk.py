"""The live object graph behind an engine and a session: everything they can reach, breadth first.

Breadth first, because then an object is named by the shortest way to it. What one object shows is in ``look``;
where a walk begins is in ``roots``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from worldmove.audit.graph import Graph, Node
from worldmove.audit.look import look_at
from worldmove.audit.looks import Look

MAX_NODES = 500_000


def walk(roots: Mapping[str, Any], own_modules: Iterable[str]) -> Graph:
    """Return the graph of all that the roots reach. ``own_modules``: those whose classes and variables are walked."""
    return Walk(roots, frozenset(own_modules)).graph()


class Walk:
    """One walk. It holds on to all that it saw, so that no address is used twice."""

    def __init__(self, roots: Mapping[str, Any], own_modules: frozenset[str]) -> None:
        self.objects: list[Any] = []
        self.looks: list[Look] = []
        self.paths: list[str] = []
        self.parents: list[int] = []
        self.parts: list[list[tuple[str, int]]] = []
        self._raw: list[str] = []
        self._own = own_modules
        self._seen: dict[int, int] = {}
        self._taken: dict[str, int] = {}
        self._num_roots = len(roots)
        for name, root in roots.items():
            self._add(name, root, parent=0)
        index = 0
        while index < len(self.objects) and len(self.objects) < MAX_NODES:
            self._open(index)
            index += 1
        self._complete = index == len(self.objects)

    def graph(self) -> Graph:
        """Return what was seen, without the objects."""
        nodes = [
            Node(path, look.kind, look.value, look.num_bytes, parent, look.whole, tuple(parts))
            for path, look, parent, parts in zip(self.paths, self.looks, self.parents, self.parts, strict=True)
        ]
        return Graph(nodes=nodes, num_roots=self._num_roots, complete=self._complete)

    def _open(self, index: int) -> None:
        for part in self.looks[index].parts:
            self.parts[index].append((part.label, self._number(part.path, part.value, parent=index)))

    def _number(self, path: str, value: Any, *, parent: int) -> int:
        known = self._seen.get(id(value))
        return self._add(path, value, parent=parent) if known is None else known

    def _add(self, path: str, value: Any, *, parent: int) -> int:
        look = look_at(value, path, self._own)
        self.objects.append(value)
        self.looks.append(look)
        self.paths.append(self._path(path, parent))
        self._raw.append(path)
        self.parents.append(parent)
        self.parts.append([])
        if look.has_identity:
            self._seen[id(value)] = len(self.objects) - 1
        return len(self.objects) - 1

    def _path(self, path: str, parent: int) -> str:
        """Two closures of one function have one name: the second is told apart by a number.

        What an object holds without a name for it (a method its self) has the path of the object.
        """
        if self._raw and path == self._raw[parent]:
            return self.paths[parent]
        self._taken[path] = self._taken.get(path, 0) + 1
        return path if self._taken[path] == 1 else f"{path} ({self._taken[path]})"
