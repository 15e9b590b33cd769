"""What an audit says: a verdict for each part of the state and for each place that is not in it."""

from collections.abc import Iterator
from enum import Enum

import msgspec

from worldmove.audit.trail import Difference


class Verdict(Enum):
    """What a leaf, or a place outside the state, is to the world that goes on."""

    NEEDED = "needed"
    """Without it another world goes on."""
    DERIVED = "derived"
    """It changes, and yet nothing was missed without it: evidence, no proof."""
    STATIC = "static"
    """It never changes, and a new session has the same."""
    MISSING = "missing"
    """It is not in the state, and a restored session has something else there."""
    REFUSED = "refused"
    """Key changes that a server may send, and the engine does not take."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the state, one place that is not in it, or key changes that are not taken."""

    path: str
    verdict: Verdict
    kind: str
    num_bytes: int
    leaves: tuple[tuple[str, str, int], ...]
    """The leaves that it stands for, each with kind and bytes; none for what is no part of the state."""
    why: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one audit."""

    engine: str
    spans: dict[str, tuple[int, int]]
    """Of each boundary: the block that it lies before, and that at which its continuation ended."""
    differences: dict[str, Difference | None]
    """At each boundary: in what the restored session differed first, None where it went on exactly."""
    rows: tuple[Row, ...]
    """The state's parts in the order of the walk."""
    places: tuple[Row, ...]
    """What is not in the state and was different after the restoring."""
    refused: tuple[Row, ...]
    """What the engine was tried with and does not take."""
    walked: int
    """Objects that were looked at."""
    complete: bool
    """Whether everything was: a walk has a limit."""
    repeats: bool | None = None
    """Whether the engine did the same when it was played from the beginning again; None: there was no need to ask."""

    @property
    def is_exact(self) -> bool:
        return all(difference is None for difference in self.differences.values())

    @property
    def missing(self) -> tuple[Row, ...]:
        return tuple(row for row in self.places if row.verdict is Verdict.MISSING)

    @property
    def is_clean(self) -> bool:
        """Exact, nothing missing, nothing refused, and everything was looked at."""
        return self.is_exact and not self.missing and not self.refused and self.complete

    def sentence(self) -> str:
        """Return the conclusion."""
        if self.is_clean:
            return f"{self.engine} went on exactly, {self._lengths()}; nothing is missing."
        return f"{self.engine} {'; '.join([self._course(), *self._lack(), *self._refusals()])}."

    def _course(self) -> str:
        found = next((d for d in self.differences.values() if d is not None), None)
        return f"went on exactly, {self._lengths()}" if found is None else f"went another way ({found})"

    def _lengths(self) -> str:
        return " and ".join(f"{end - start} blocks from a {name} boundary" for name, (start, end) in self.spans.items())

    def _lack(self) -> Iterator[str]:
        if not self.complete:
            yield "not everything that it reaches could be looked at"
        elif self.repeats is False:
            yield "nor does it do the same twice from the very beginning, so it is not deterministic"
        elif self.missing:
            named = ", ".join(row.path for row in self.missing[:5])
            more = f" and {len(self.missing) - 5} more" if len(self.missing) > 5 else ""
            yield f"not in its state: {named}{more}"
        elif not self.is_exact:
            yield "what makes the difference was not found"

    def _refusals(self) -> Iterator[str]:
        yield from (f"it takes no {row.path}" for row in self.refused)
