"""Tables and paragraphs of a Markdown page. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

WIDTH = 118


def paragraph(*sentences: str) -> str:
    """Return sentences as one paragraph, wrapped."""
    return fill(" ".join(sentences), WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def spread_row(name: str, spread: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row of median, 90th percentile and largest."""
    return (name, *(f"{spread[key]:.2f}" for key in ("p50", "p90", "max")))


def met(is_met: bool) -> str:
    """Say whether a goal was met."""
    return "met" if is_met else "**not met**"
