"""The root of what a worker and its server say to each other, the shapes inside, and their bounds."""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_FRAMES, MAX_LIST
from worldmove.move.ledger_messages import Count, Name
from worldmove.move.message import Blob, Groups, Placement, Seconds, Text, Ticket

Sha256 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
MAX_COPIES = 4096
"""A list in a message is bounded, or a frame of 17 MB could be read into a hundred times that."""
Ages = Annotated[tuple[Seconds, ...], msgspec.Meta(max_length=MAX_COPIES)]
Attempts = Annotated[tuple[Name, ...], msgspec.Meta(max_length=MAX_COPIES)]
Tile = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
"""As far as a frame's header can say (``serve.frames``)."""


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """The root of the messages between a worker and its server."""


class OfSession(Message, frozen=True, kw_only=True):
    """The root of those that are about one session."""

    session: Name


class Change(Message, frozen=True, kw_only=True, tag="change"):
    """One key change: see ``worldmove.engine.base.KeyChange``."""

    number: Count
    key: Name
    down: bool


class Note(Message, frozen=True, kw_only=True, tag="note"):
    """One frame's annotations: see ``worldmove.engine.base.FrameNote``."""

    y: Tile
    x: Tile
    action: Name
    number: Count


class Copy(Message, frozen=True, kw_only=True, tag="copy"):
    """One copy of a session that a worker holds."""

    session: Name
    phase: Name
    """A word of ``worker.session.CopyPhase``: live, frozen, superseded, shadow, following, retired, throwaway.

    Or KEPT.
    """
    epoch: Count
    block: Count
    """The next block of this copy."""
    attempt: Text = ""
    """The newest attempt that this copy took part in."""
    left: Count = 0
    """Every block before this one has left the gateway, as far as this copy can know."""
    stays: bool = False
    """Once it has retired it stays until it is let pass: its session was protected when this copy last heard of it."""


KEPT = "kept"
"""What is reported of a snapshot that is kept for another worker's session. It is not installed, and plays nothing."""


class SnapshotFacts(Message, frozen=True, kw_only=True, tag="snapshot_facts"):
    """A session's state at a boundary, copied aside: where it may be read, and the proof of it under a nonce."""

    epoch: Count
    block: Count
    """The next block: every one before it has left the gateway."""
    manifest: Blob
    placement: Placement
    ticket: Ticket
    groups: Groups


class InTime(Message, frozen=True, kw_only=True, tag="in_time"):
    """Do it until so long after that beat has come, and not later: what it is done for may not hold any more."""

    beat: Count
    within_s: Seconds


Changes = Annotated[tuple[Change, ...], msgspec.Meta(max_length=MAX_LIST)]
"""A block's closed list."""
Notes = Annotated[tuple[Note, ...], msgspec.Meta(max_length=MAX_FRAMES)]
HeldCopies = Annotated[tuple[Copy, ...], msgspec.Meta(max_length=MAX_COPIES)]
FrameDigests = Annotated[tuple[Sha256, ...], msgspec.Meta(max_length=MAX_FRAMES)]
"""Of each frame's raw bytes, before any codec."""
