"""Digests by the double: what the numpy twin says, at once or behind a word."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from worldmove.state import wmf1
from worldmove.state.array import raw_memory
from worldmove.state.double_memory import says, wait_until
from worldmove.state.memory import Behind, Part


class Digested:
    """Digests that are there."""

    def __init__(self, digests: bytes) -> None:
        self._digests = digests

    def joined(self) -> bytes:
        return self._digests


class Awaited:
    """Digests that are taken once a word says its number; those of what comes early as soon as its own does."""

    def __init__(
        self, behind: Behind, early: Callable[[], Mapping[int, bytes]], all_of_it: Callable[[], tuple[bytes, ...]]
    ) -> None:
        self._behind = behind
        self._early = early
        self._all = all_of_it

    def joined(self) -> bytes:
        wait_until(lambda: says(self._behind.early_word) or self._behind.is_open())
        early = self._early()
        wait_until(self._behind.is_open)
        return b"".join(early.get(index, digest) for index, digest in enumerate(self._all()))


class PlanOfDouble(NamedTuple):
    """Groups, and the numbers of those that come early."""

    groups: tuple[tuple[Part, ...], ...]
    early: frozenset[int]

    def digests(self, key: bytes, which: Iterable[int]) -> dict[int, bytes]:
        """Return what the numpy twin says of some groups."""
        table = wmf1.Table.of(key)
        return {index: wmf1.group_digest(table, _joined(self.groups[index]), index) for index in which}


def _joined(group: Sequence[Part]) -> memoryview | bytes:
    parts = [raw_memory(part.address, part.length, []).data for part in group]
    return parts[0] if len(parts) == 1 else b"".join(parts)
