"""What a worker says to its server."""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_TOLD
from worldmove.move.ledger_messages import Count, Name, Operation
from worldmove.move.message import Blob, Fields, Seconds, Text
from worldmove.move.messages import AnyMoveMessage
from worldmove.state.leaf_sizes import LeafSize
from worldmove.worker.message import (
    Ages,
    Attempts,
    Changes,
    FrameDigests,
    HeldCopies,
    Message,
    Notes,
    OfSession,
    Sha256,
    SnapshotFacts,
)

Rates = Annotated[dict[Name, float], msgspec.Meta(max_length=64)]


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    """The first word on a link: who is there, and what it holds."""

    worker: Name
    incarnation: Count
    pid: Count
    environment: Fields
    num_slots: Count
    arena_bytes: Count
    copies: HeldCopies
    rates: Rates = msgspec.field(default_factory=dict)
    """Measured before the hello, for admission: block_s; hash_bytes_per_s, copy_bytes_per_s, row_bytes_per_s, and
    NAME_bytes_per_s of each path; what a block rewrites (``worker.habits``); and period_s, the engine's own."""
    birth: Text = ""
    """What tells this process from a later one with its pid (``worker.birth``)."""
    device: Text = ""
    """The GPU that it computes on, by its UUID: others may compute there too. Empty for one on a core of its own."""
    version: Text = ""
    """Of WorldMove, as it runs there. A server of another one reads it though it understands nothing else."""


class Opened(OfSession, frozen=True, kw_only=True, tag="opened"):
    """A session is begun, and this is the state that it begins with."""

    epoch: Count
    num_bytes: Count
    num_leaves: Count
    state_digest: Text


class Failed(OfSession, frozen=True, kw_only=True, tag="failed"):
    """A request about a session could not be met; ``code`` is that of the error."""

    code: Name
    message: Text


class Fault(OfSession, frozen=True, kw_only=True, tag="fault"):
    """A task of this session has failed at its worker as nobody foresaw: a bug, to be counted."""

    task: Name
    message: Text


class BlockDone(OfSession, frozen=True, kw_only=True, tag="block_done"):
    """A block that the owner has computed."""

    epoch: Count
    block: Count
    frames: Blob
    """Raw RGB8, [frames, height, width, 3]."""
    frame_sha256: FrameDigests
    """Taken by the worker over each frame's raw bytes, before any codec."""
    notes: Notes
    compute_s: float
    state_digest: Text = ""
    """Of the state after this block; given for the check blocks after a move, else empty."""


class Held(OfSession, frozen=True, kw_only=True, tag="held"):
    """A closed list that a copy holds. Whoever closes lists from now on must not close this one anew."""

    block: Count
    changes: Changes


class Left(OfSession, frozen=True, kw_only=True, tag="left"):
    """A block that has left the gateway: a client that was cut off from an earlier server may lack its frames."""

    block: BlockDone


class Reported(Message, frozen=True, kw_only=True, tag="reported"):
    """All that was held when this link was made has been said on it."""

    worker: Name
    incarnation: Count


class StateDone(OfSession, frozen=True, kw_only=True, tag="state_done"):
    """What the owner's state was after a block: for records."""

    epoch: Count
    block: Count
    state_digest: Text
    paths: tuple[str, ...]
    leaf_digests: bytes
    """Of each path, in order: ``state.leaf_digests``."""


class Described(OfSession, frozen=True, kw_only=True, tag="described"):
    """The leaves of a session's state, as far as they are told one by one."""

    request: Count
    block: Count
    """The next block."""
    num_leaves: Count
    num_bytes: Count
    """Of all of them."""
    leaves: Annotated[tuple[LeafSize, ...], msgspec.Meta(max_length=MAX_TOLD)]
    """Those with most bytes, in the order of the state."""


class Saved(OfSession, frozen=True, kw_only=True, tag="saved"):
    """The file holds manifest and bytes of the state before ``block``."""

    request: Count
    epoch: Count
    block: Count
    state_digest: Text
    manifest_sha256: Sha256
    manifest_bytes: Count
    num_bytes: Count
    remainders: bytes


class SnapshotTaken(OfSession, frozen=True, kw_only=True, tag="snapshot_taken"):
    """A session's state was copied aside, and every block before it has left the gateway."""

    request: Count
    snapshot: SnapshotFacts


class Kept(OfSession, frozen=True, kw_only=True, tag="kept"):
    """A snapshot is kept here, proven, and an older one was let go."""

    request: Count
    block: Count


class Replayed(OfSession, frozen=True, kw_only=True, tag="replayed"):
    """A block that was shown before, as the copy that took over has computed it anew from the lists."""

    epoch: Count
    block: Count
    frame_sha256: FrameDigests


class NotDone(OfSession, frozen=True, kw_only=True, tag="not_done"):
    """A Describe, Save, TakeSnapshot or Keep could not be met; ``code`` is that of the error."""

    request: Count
    code: Name
    message: Text


class CheckDone(OfSession, frozen=True, kw_only=True, tag="check_done"):
    """A retired copy has stepped one block from the input log alone."""

    attempt: Name
    block: Count
    frame_sha256: FrameDigests
    state_digest: Text
    compute_s: Seconds = 0.0


class Followed(OfSession, frozen=True, kw_only=True, tag="followed"):
    """A copy that follows its session's owner has stepped one block that the owner has stepped, or is stepping."""

    attempt: Name
    block: Count
    frame_sha256: FrameDigests
    compute_s: Seconds = 0.0


class Copies(Message, frozen=True, kw_only=True, tag="copies"):
    """Slots in use have changed, or a poll asked."""

    worker: Name
    incarnation: Count
    copies: HeldCopies
    slots_free: Count
    slots_quarantined: Count
    poll: Count = 0
    """The number of the poll that this answers; 0 for none."""


class Alive(Message, frozen=True, kw_only=True, tag="alive"):
    """The worker's event loop has come to this beat."""

    number: Count
    block_s: Seconds = 0.0
    """A high quantile of its recent block times, or of the warm-up's one."""
    turn_s: Seconds = 0.0
    """By how much longer than it is computed a block keeps the engine, in the long run; 0: none was stepped yet."""
    spare_s: Seconds = 0.0
    """What a spare block is reckoned to take where it is to fit in: a high quantile of both together; 0: not said."""
    ages_s: Ages = ()
    """How long ago the newest list came of each session that is played here and does not rest."""
    num_done: Count = 0
    """Of what takes long (``worker.progress``): while it changes, the worker gets on with what it was asked for."""
    num_pulled: Count = 0
    """Of other workers' states, in the same way."""
    taken_s: Seconds = 0.0
    """For how long its engine has been at what it is at; 0: it is free."""
    at_block: bool = False
    """That is a block: no other call of the engine's ends between two of them."""
    attempts: Attempts = ()
    """Moves' attempts that it has got on with, at either end, since the beat before."""
    num_lines_dropped: Count = 0
    """Of its log, since it began."""


class Leaving(Message, frozen=True, kw_only=True, tag="leaving"):
    """This worker was told to end (SIGTERM): move its sessions away. The answer is Shutdown."""

    worker: Name
    incarnation: Count


class Freed(OfSession, frozen=True, kw_only=True, tag="freed"):
    """A closed session's slot is free again."""


class LedgerAsk(Message, frozen=True, kw_only=True, tag="ledger_ask"):
    """A question to the ledger. One that has no answer yet gets none, and is asked again."""

    request: Count
    worker: Name
    incarnation: Count
    operation: Operation


ToServer = (
    Hello
    | Held
    | Left
    | Reported
    | Opened
    | Failed
    | Fault
    | BlockDone
    | StateDone
    | CheckDone
    | Followed
    | Described
    | Saved
    | SnapshotTaken
    | Kept
    | Replayed
    | NotDone
    | Leaving
    | Copies
    | Alive
    | Freed
    | LedgerAsk
    | AnyMoveMessage
)
