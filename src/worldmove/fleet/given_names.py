"""Names that were given, so that none is given twice while anything of the first may still be on its way. Pure."""

from collections.abc import Callable

NUM_REMEMBERED = 1 << 16
"""Whoever asks for worlds that are refused is given a name for each: the oldest are forgotten."""


class GivenNames:
    """The newest of one kind."""

    def __init__(self, num_remembered: int = NUM_REMEMBERED) -> None:
        self._num_remembered = num_remembered
        self._names: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._names)

    def new(self, draw: Callable[[], str]) -> str:
        """Return the first name drawn that none of the last ones is."""
        while (name := draw()) in self._names:
            continue
        self._names[name] = None
        if len(self._names) > self._num_remembered:
            del self._names[next(iter(self._names))]
        return name
