"""Which leaves a source has called final, until they are brought over."""

from collections.abc import Iterable

_STEPS = ".["
"""What a path goes on with inside a container."""


class Finals:
    """Paths that wait, each once, in the order in which they came; only those under which the state has leaves.

    So there are never more than that state has leaves and containers, whatever is said.
    """

    def __init__(self, leaf_paths: Iterable[str]) -> None:
        self._known = frozenset(name for path in leaf_paths for name in (path, *_around(path)))
        self._waiting: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, paths: Iterable[str]) -> None:
        """Note what was said; what the state does not have is forgotten at once."""
        self._waiting.update(dict.fromkeys(path for path in paths if path in self._known))

    def take(self) -> str | None:
        """Return the one that came first, and forget it."""
        if not self._waiting:
            return None
        path = next(iter(self._waiting))
        del self._waiting[path]
        return path

    def clear(self) -> None:
        """Forget all of them: they are of a block that is over, or came over with everything else."""
        self._waiting.clear()


def _around(path: str) -> Iterable[str]:
    """Return the containers that a leaf is in."""
    return (path[:at] for at, sign in enumerate(path) if sign in _STEPS)
