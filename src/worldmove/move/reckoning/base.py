"""The contract of a strategy's reckoning: what it needs to have been measured, what forbids it, what it costs. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from worldmove.move.measured import Measured
from worldmove.move.terms import Reckoning, Term

HASHES = ("source_hash_rate", "destination_hash_rate", "horizon_s")
"""What every strategy needs beside the path: its proofs, and what they have to fit into."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What forbids a strategy whatever the horizon: a word, a sentence with its numbers, and the terms up to there."""

    reason: str
    detail: str
    before: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Reckoner:
    """How one strategy is reckoned. ``forbidden`` and ``reckon`` may count on the measurements that it needs."""

    needs: tuple[str, ...]
    forbidden: Callable[[Measured], Hindrance | None]
    reckon: Callable[[Measured], Reckoning]


def never(_: Measured) -> None:
    """Nothing forbids it."""
