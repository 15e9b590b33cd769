"""The messages of a move: typed, bounded, each with the session, attempt and epoch that it belongs to.

    controller -> source        Prepare      say what there is, and let your arena be read
    source -> controller        Prepared     layout, environment, ticket
    controller -> destination   Offer        reserve a shadow for it
    destination -> controller   Reserved | Declined
    controller -> both          Begin        a strategy's early part: make ready, and play on
    source -> destination       Base         what may be pulled before the boundary
    destination -> source       Fetched      the base is here: it is read no more
    source -> destination       Final        these leaves are final for this block
    source -> destination       Component    a part of it may be stepped over there: where a proven copy of it lies
    source -> destination       Handed       what that part is stepped on, of one block
    destination -> controller   Ready        nothing more can be done before the boundary
      -> source                              nothing else is computed there: it waits for the freeze
    controller -> source        Start        the ledger has opened the attempt: freeze at one of the next boundaries
    source -> destination       Meet         I shall freeze before this block
    source -> destination       Still        nothing writes what lies in my slot any more: it may be pulled already
    source -> destination       Boundary     the exact manifest; the bytes may be pulled
    destination -> source       Landed       the write window is closed
    source -> destination       Proof        the source's last message: from here on it is in doubt
    either -> the other         Abandon      before the proof (source) or the commit (destination)
    controller -> either        Cancel
    controller, destination     Inquire      a hint: the ledger's row has changed, ask it
      -> a holder
    either -> controller        Ended        what became of it at this end, and the times of its phases
    a holder -> controller      Gone         the ledger says that I own it, and I hold no copy

Any of them may be lost, repeated or late. Drivers drop what does not match session, attempt, epoch and
incarnation; nothing here is trusted further than that.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from worldmove.move.ledger_messages import AttemptId, Count, Name

Text = Annotated[str, msgspec.Meta(max_length=2048)]
Nonce = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
MAX_BLOB_BYTES = 16 << 20
Blob = Annotated[bytes, msgspec.Meta(max_length=MAX_BLOB_BYTES)]
Ticket = Annotated[bytes, msgspec.Meta(max_length=512)]
Fields = Annotated[dict[Name, Text], msgspec.Meta(max_length=512)]
"""An environment's."""
Placement = Annotated[tuple[Count, ...], msgspec.Meta(max_length=1 << 17)]
"""A storage for each leaf that there may be."""
Groups = Annotated[bytes, msgspec.Meta(max_length=16 << 20)]
"""16 bytes of each, one after the other; of 1 MiB each: a state of a tebibyte."""
Seconds = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""A number: what is none, or endless, could be waited for or added up by nobody."""
MAX_ROLLED = 1 << 16
MAX_COUNT = 1 << 62
Rolls = Annotated[dict[Text, tuple[Count, Count, Count]], msgspec.Meta(max_length=MAX_ROLLED)]
RowBytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Paths = Annotated[tuple[Text, ...], msgspec.Meta(max_length=4096)]
MAX_HANDED_BYTES = 4 << 20
Wait = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Phases = Annotated[tuple[tuple[Name, Seconds, Seconds], ...], msgspec.Meta(max_length=64)]

CONTROLLER = "controller"
MAX_WORD, MAX_SENTENCE = 64, 2048


def sayable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's fields with its reason and its detail as a message can carry them.

    What an engine raises may have words of any length and of any signs: sent as they are, they would end the link of
    every world of their worker.
    """
    told = dict(fields)
    if "reason" in told:
        told["reason"] = word(told["reason"])
    if "detail" in told:
        told["detail"] = _cut(told["detail"], MAX_SENTENCE)
    return told


def word(text: str) -> str:
    """Return a reason, or an error's code, as a message can carry it."""
    return _cut(text, MAX_WORD) or "error"


def _cut(text: str, most: int) -> str:
    return text.encode("utf-8", "backslashreplace").decode()[:most]


class MoveMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What every message of a move carries. ``epoch`` is the source's; ``incarnation`` is the sender's."""

    to: Name
    sender: Name
    incarnation: Count
    session: Name
    attempt: AttemptId
    epoch: Count


class Prepare(MoveMessage, frozen=True, kw_only=True, tag="prepare"):
    """Describe the session and export its slot."""

    transport: Name = "shm"


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


class Start(MoveMessage, frozen=True, kw_only=True, tag="start"):
    """The attempt is open: freeze at one of the next block boundaries."""

    destination: Name
    destination_incarnation: Count
    nonce: Nonce


class Still(MoveMessage, frozen=True, kw_only=True, tag="still"):
    """Nothing writes what lies in the source's slot any more: what the offer has foretold may be pulled.

    It is not known yet what of the state lies elsewhere: the boundary says what has come into the slot since.
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
    rolled: Rolls = {}
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


AnyMoveMessage = (
    Prepare
    | Prepared
    | Offer
    | Reserved
    | Declined
    | Begin
    | Base
    | Fetched
    | Final
    | Component
    | Handed
    | Ready
    | Start
    | Meet
    | Still
    | Boundary
    | Landed
    | Proof
    | Abandon
    | Cancel
    | Inquire
    | Ended
    | Gone
)
