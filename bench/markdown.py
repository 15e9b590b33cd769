"""Tables and paragraphs of a Markdown page. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

WIDTH = 118
KEPT = "\0"
CODE = re.compile(r"`[^`]*`")


def paragraph(*sentences: str) -> str:
    """Return sentences as one paragraph, wrapped, no code broken."""
    text = CODE.sub(lambda code: code[0].replace(" ", KEPT), " ".join(sentences))
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False).replace(KEPT, " ") + "\n"


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
