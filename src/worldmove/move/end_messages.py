"""What the two ends of a move say to each other: ``move.messages`` has the order."""

from typing import Annotated

import msgspec

from worldmove.move.ledger_messages import Count, Name
from worldmove.move.message import (
    MAX_HANDED_BYTES,
    Blob,
    Groups,
    MoveMessage,
    Paths,
    Placement,
    Rolls,
    RowBytes,
    Text,
    Ticket,
)


class Base(MoveMessage, frozen=True, kw_only=True, tag="base"):
    """What may be pulled before the boundary, and where it lies."""

    block: Count
    """The next block of what lies there; of a state that is played on, when this was said."""
    manifest: Blob
    placement: Placement
    ticket: Ticket
    num_bytes: Count = 0
    manifest_digest: Annotated[bytes, msgspec.Meta(max_length=64)] = b""
    groups: Groups = b""
    """A proof of it, as ``Proof`` has it. Without one it is played on, and what is pulled may be torn."""
    row_bytes: RowBytes | None = None
    """How finely what is pulled is looked at: ``state.rows``."""
    followed: Paths = ()
    """What will be stepped over there, if it can be: it need not be pulled before. Leaves, or containers of leaves."""


class Fetched(MoveMessage, frozen=True, kw_only=True, tag="fetched"):
    """All of the base is at the destination, and it is read no more."""


class Final(MoveMessage, frozen=True, kw_only=True, tag="final"):
    """These leaves, or all leaves in these containers, are as they will be at the end of the block that is computed."""

    paths: Paths


class Component(MoveMessage, frozen=True, kw_only=True, tag="component"):
    """A part of the state, before one block, copied aside: with its own manifest and proof, and where it lies."""

    block: Count
    manifest: Blob
    """Empty: there is none, and ``detail`` says why."""
    placement: Placement
    ticket: Ticket
    num_bytes: Count = 0
    manifest_digest: Annotated[bytes, msgspec.Meta(max_length=64)] = b""
    groups: Groups = b""
    detail: Text = ""


class Handed(MoveMessage, frozen=True, kw_only=True, tag="handed"):
    """What a block hands to its followed component."""

    block: Count
    data: Annotated[bytes, msgspec.Meta(max_length=MAX_HANDED_BYTES)]


class Ready(MoveMessage, frozen=True, kw_only=True, tag="ready"):
    """Nothing more can be done before the boundary. Sent again until there is word of one.

    To the source, once, in answer to its Meet: nothing else is computed where the session goes, for a little while.
    From a follower: it stands where it is met, and has digested what it has.
    """


class Meet(MoveMessage, frozen=True, kw_only=True, tag="meet"):
    """The source freezes before this block: the destination may compute up to there, and not beyond.

    Said again with an earlier block where the world has come to rest meanwhile. The earliest counts. Where the state is
    pulled, said again with a later one if the source was not quiet before this block's list came.
    """

    block: Count
    rows: Blob = b""
    """The digest of each row of the base as it is now, as ``Boundary`` has them: the session stands still."""
    placement: Placement = ()
    """Where these rows lie now; empty where it is as the base has said."""
    rolled: Rolls = msgspec.field(default_factory=dict)
    """What the last block has rolled, as ``Boundary`` has it: the next one is expected to roll as much, and no row is
    believed to have been."""


class Still(MoveMessage, frozen=True, kw_only=True, tag="still"):
    """Nothing writes what lies in the source's slot any more: what the offer says may come early may be pulled.

    What of it lies elsewhere than was foretold, or has come into the slot since, the boundary says.
    """


class Boundary(MoveMessage, frozen=True, kw_only=True, tag="boundary"):
    """The session is frozen: its exact manifest, and where its bytes may be pulled from."""

    block: Count
    """The next block: the state is that before it."""
    manifest: Blob
    """Whole, or what differs from the one that the base has told, or else the offer (``state.preview``)."""
    placement: Placement
    """Empty where it is as was foreseen there."""
    rows: Blob = b""
    """The digest of each of its rows, eight bytes, least significant first; none where all of it is to be pulled."""
    changed: Blob | None = None
    """The numbers of those rows, four bytes each, least significant first, where the others are as the Meet for this
    block has said. None: of all rows there are."""
    row_bytes: RowBytes | None = None
    plain: Text = ""
    """Why there are no digests, where there should be some."""
    rolled: Rolls = msgspec.field(default_factory=dict)
    """What its engine says of leaves that it has rolled: axis, by how much, and what stayed in front. Looked at first,
    and believed of no row."""
    moved: Placement = ()
    """The storages that have come into the slot since Still: what was pulled of their places before is not theirs."""


class Landed(MoveMessage, frozen=True, kw_only=True, tag="landed"):
    """Every extent was copied and the write window is closed."""


class Proof(MoveMessage, frozen=True, kw_only=True, tag="proof"):
    """The source's last message: the digests of all groups of what it froze, under the attempt's nonce."""

    block: Count
    num_bytes: Count
    manifest_digest: Annotated[bytes, msgspec.Meta(min_length=16, max_length=64)]
    groups: Groups


class Abandon(MoveMessage, frozen=True, kw_only=True, tag="abandon"):
    """This end has given up, and why."""

    reason: Name
    detail: Text
