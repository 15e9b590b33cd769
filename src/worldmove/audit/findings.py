"""What the two processes of an audit are told, and what they found: messages, and nothing else."""

import msgspec

from worldmove.audit.graph import Graph
from worldmove.audit.trail import Difference, Moment

SOURCE, RESTORED = "source", "restored"
"""The two roles that a process can play."""
BUSY, CALM = "busy", "calm"
BOUNDARIES = (BUSY, CALM)
"""The two boundaries, by the names of what is exported there."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do."""

    role: str
    engine: str
    folder: str
    before: int
    blocks: int
    limit_s: float
    at_once: int = 1
    drops_leaves: bool = True
    debug: bool = False


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What ended an order, or the work of one fork."""

    message: str
    code: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an order: its findings lie in the folder, or there is a fault."""

    fault: Fault | None = None


class LeafFact(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one leaf without playing."""

    kind: str
    num_bytes: int


class SourceFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Of the process that plays from the beginning. ``moments[b]`` is the boundary after ``b`` blocks."""

    moments: list[Moment]
    spans: dict[str, tuple[int, int]]
    """Of each boundary: its own number of blocks, and that of its continuation's end."""
    facts: dict[str, LeafFact]
    """Of every leaf that stood at one of the boundaries."""
    opened: Graph
    starts: dict[str, Graph]
    """At each boundary."""
    ends: dict[str, Graph]
    """At the end of each continuation."""


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """A restored session: its moments from the boundary on, and what it could reach at both ends."""

    moments: list[Moment]
    start: Graph
    end: Graph


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a state that can be dropped. ``is_fresh``: it is what a new session has there."""

    path: str
    is_fresh: bool


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a session that was restored without one unit."""

    boundary: str
    path: str
    difference: Difference | None = None
    """The first thing beside the unit itself that was different."""
    itself: bool = False
    """The unit was still different when the last block was done."""
    fault: str | None = None
    """It could not even be restored or stepped."""

    @property
    def is_missed(self) -> bool:
        return self.difference is not None or self.itself or self.fault is not None


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a trial: the engine took what it was given, or there is a fault."""

    name: str
    fault: str | None = None


class RestoredFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Of the fresh process."""

    tried: list[Tried]
    continuations: dict[str, Continuation]
    units: dict[str, list[Unit]]
    drops: list[Drop]
