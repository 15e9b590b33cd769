"""What the controller of a move and its two ends say to each other: ``move.messages`` has the order."""

from typing import Annotated

import msgspec

from worldmove.move.ledger_messages import Count, Name
from worldmove.move.message import Blob, Fields, MoveMessage, Nonce, Phases, Seconds, Text, Ticket, Wait


class Prepare(MoveMessage, frozen=True, kw_only=True, tag="prepare"):
    """Describe the session and export its slot."""

    transport: Name = "shm"
    stays: bool = False
    """Once it has retired, its copy stays until it is let pass: the session is protected, and whoever keeps a snapshot
    of it may be who it goes to.
    """


class Prepared(MoveMessage, frozen=True, kw_only=True, tag="prepared"):
    """What there is: its layout, the environment that it is played in, and a ticket to read its arena."""

    layout: Blob
    environment: Fields
    ticket: Ticket
    block_s: Seconds
    """The session's recent block time at the source, seconds (a high quantile)."""


class Offer(MoveMessage, frozen=True, kw_only=True, tag="offer"):
    """Take a shadow for this session, and be ready to pull."""

    layout: Blob
    environment: Fields
    ticket: Ticket
    nonce: Nonce
    source: Name
    source_incarnation: Count
    transport: Name
    strategy: Name
    """The value of a ``move.strategy.Strategy``. A destination that does not know it declines."""
    lease_s: Wait
    """Silence after which a shadow that has not asked for the commit frees itself."""
    patience_s: Wait = 60.0
    """How long everything before the boundary may take. A boundary copy does nothing then."""
    affordable_bytes: Count | None = None
    """What may be left for the end where it is pulled in rounds. None: whatever is."""
    pause_bytes: Count | None = None
    """What of it may be left when the session is frozen. None: whatever is."""


class Reserved(MoveMessage, frozen=True, kw_only=True, tag="reserved"):
    """A shadow slot is taken, poisoned, connected and touched."""


class Declined(MoveMessage, frozen=True, kw_only=True, tag="declined"):
    """Not moved, and nothing changed: by the destination of an offer, or by the source that was to prepare."""

    reason: Name
    detail: Text


class Begin(MoveMessage, frozen=True, kw_only=True, tag="begin"):
    """The attempt is open: make ready for the boundary, and play on. Sent again and again: an end goes on meanwhile."""

    destination: Name
    destination_incarnation: Count
    nonce: Nonce
    lease_s: Wait
    """Silence after which an end gives up."""
    patience_s: Wait
    strategy: Name


class Start(MoveMessage, frozen=True, kw_only=True, tag="start"):
    """The attempt is open: freeze at one of the next block boundaries."""

    destination: Name
    destination_incarnation: Count
    nonce: Nonce


class Cancel(MoveMessage, frozen=True, kw_only=True, tag="cancel"):
    """Give up if that is still possible. The answer is an Ended, which says which way it went."""


class Inquire(MoveMessage, frozen=True, kw_only=True, tag="inquire"):
    """A hint that the ledger's row has changed. It says nothing itself: who hears it asks the ledger."""


class Gone(MoveMessage, frozen=True, kw_only=True, tag="gone"):
    """The ledger names the sender as the owner in ``owned_epoch``, and it holds no copy: that epoch is dead."""

    owned_epoch: Count


class Ended(MoveMessage, frozen=True, kw_only=True, tag="ended"):
    """What became of the attempt at this end, and the times of its phases."""

    side: Annotated[str, msgspec.Meta(pattern="^(source|destination)$")]
    outcome: Annotated[str, msgspec.Meta(pattern="^(committed|aborted|in_doubt)$")]
    reason: Name
    detail: Text
    phases: Phases
    """(phase, start, end): seconds since this end's own start of the attempt; CLOCK_MONOTONIC, one host."""
    clock: Seconds
    """The monotonic time of that start, so that two ends on one host can be drawn on one axis."""
    num_bytes: Count
    num_leaves: Count
    num_groups: Count
    state_digest: Text
    """Of the installed state (destination) or the frozen state (source); empty where there is none."""
    in_place_bytes: Count = 0
    """What the destination held already at the boundary, where it belongs; elsewhere; and what was pulled then."""
    moved_bytes: Count = 0
    pulled_bytes: Count = 0
    followed_bytes: Count = 0
    """What the destination had computed of it beside its slot, and the boundary's rows say the same of."""
    plain: Text = ""
    """Why all of it was pulled though the strategy knows better."""
