"""What an explanation of a file consists of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Table = tuple[tuple[str, ...], Sequence[Sequence[object]]]
"""A header, and rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file's kind, one line about it, and its content: for programs, and as tables for people."""

    kind: str
    sentence: str
    fields: dict[str, Any]
    tables: tuple[Table, ...] = ()


def facts(pairs: Sequence[tuple[str, object]]) -> Table:
    """Return a table of names and values."""
    return ("FIELD", "VALUE"), pairs
