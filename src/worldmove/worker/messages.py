"""What a worker and its server say to each other, beside the messages of a move.

One ordered link joins each worker to the server. The server also carries messages between workers: it
forwards a ``MoveMessage`` to the worker that its ``to`` names. Ledger operations travel as ``LedgerAsk``.

A session's life:   Open -> Opened | Failed;  Inputs(b) -> BlockDone(b) -> Acknowledge(b);  Close -> Freed
A new link:         Hello, then for each copy Held(b)... and Left(b)..., then Reported, then BlockDone(b) once more
A worker's lease:   Beat(n) -> Alive(n)
"""

from typing import Annotated

import msgspec

from worldmove.move.ledger_rules import Answer, Operation
from worldmove.move.messages import AnyMoveMessage, Blob, Count, Fields, Name, Text
from worldmove.state.leaf_sizes import LeafSize

Sha256 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
MAX_FRAMES = 4096
"""Of one block. A list in a message is bounded, or a frame of 17 MB could be read into a hundred times that."""
MAX_CHANGES = 4096
MAX_COPIES = 4096


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """The root of the messages between a worker and its server."""


class Change(Message, frozen=True, kw_only=True, tag="change"):
    """One key change: see ``worldmove.engine.base.KeyChange``."""

    number: Count
    key: Name
    down: bool


class Note(Message, frozen=True, kw_only=True, tag="note"):
    """One frame's annotations: see ``worldmove.engine.base.FrameNote``."""

    y: int
    x: int
    action: Name
    number: Count


class Copy(Message, frozen=True, kw_only=True, tag="copy"):
    """One copy of a session that a worker holds."""

    session: Name
    phase: Name
    """A word of ``worker.session.CopyPhase``: live, frozen, superseded, shadow, retired, throwaway."""
    epoch: Count
    block: Count
    """The next block of this copy."""
    attempt: Text = ""
    """The newest attempt that this copy took part in."""
    left: Count = 0
    """Every block before this one has left the gateway, as far as this copy can know."""


# server -> worker


class Open(Message, frozen=True, kw_only=True, tag="open"):
    session: Name
    epoch: Count
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    picture: Blob | None = None
    """A raw RGB frame: begin from this picture alone (a throw-away copy, never in the ledger)."""
    saved: Text = ""
    """A file of this host that holds a saved session: go on from it."""


class Close(Message, frozen=True, kw_only=True, tag="close"):
    session: Name


class Inputs(Message, frozen=True, kw_only=True, tag="inputs"):
    """Block ``block``'s closed list. Sent to every holder of the session; each keeps what it still needs."""

    session: Name
    block: Count
    changes: Annotated[tuple[Change, ...], msgspec.Meta(max_length=MAX_CHANGES)]
    account: bool = False
    """Whether the owner is to send a StateDone after this block."""


class Describe(Message, frozen=True, kw_only=True, tag="describe"):
    """Say which leaves a session that is played here has. The answer is Described, or NotDone."""

    session: Name
    request: Count


class Save(Message, frozen=True, kw_only=True, tag="save"):
    """Write a session's state at its next boundary to a new file of this host. The answer is Saved, or NotDone."""

    session: Name
    request: Count
    path: Text


class Acknowledge(Message, frozen=True, kw_only=True, tag="acknowledge"):
    """The gateway has taken block ``block`` of this epoch, and it has left for the client."""

    session: Name
    epoch: Count
    block: Count
    server_life: Count


class TakeOver(Message, frozen=True, kw_only=True, tag="take_over"):
    """The ledger has granted the session to this worker's retired copy (failover): replay the lists, then play.

    ``block`` is the next to be shown; earlier ones are computed and not sent.
    """

    session: Name
    epoch: Count
    block: Count


class Refused(Message, frozen=True, kw_only=True, tag="refused"):
    """A frame or a report of this worker's copy was of an older epoch than the ledger's row, which has ``epoch``."""

    session: Name
    epoch: Count


class SendAgain(Message, frozen=True, kw_only=True, tag="send_again"):
    """Frames of the session's owner may have been dropped: send again what is not acknowledged."""

    session: Name


class Beat(Message, frozen=True, kw_only=True, tag="beat"):
    """Answer with an Alive of this number. An answer shows that both directions of the link carry."""

    number: Count


class Poll(Message, frozen=True, kw_only=True, tag="poll"):
    """Say what you hold. The answer is a Copies with the poll's number."""

    poll: Count


class Shutdown(Message, frozen=True, kw_only=True, tag="shutdown"):
    """End cleanly: finish the block in hand, free everything, exit with 0."""


# worker -> server


class Hello(Message, frozen=True, kw_only=True, tag="hello"):
    worker: Name
    incarnation: Count
    pid: Count
    environment: Fields
    num_slots: Count
    arena_bytes: Count
    copies: Annotated[tuple[Copy, ...], msgspec.Meta(max_length=MAX_COPIES)]
    rates: Annotated[dict[Name, float], msgspec.Meta(max_length=64)] = {}
    """Measured before the hello, for admission: hash_bytes_per_s, block_s, and NAME_bytes_per_s of each path."""
    birth: Text = ""
    """What tells this process from a later one with its pid (``worker.birth``)."""


class Opened(Message, frozen=True, kw_only=True, tag="opened"):
    session: Name
    epoch: Count
    num_bytes: Count
    num_leaves: Count
    state_digest: Text


class Failed(Message, frozen=True, kw_only=True, tag="failed"):
    """A request about a session could not be met; ``code`` is that of the error."""

    session: Name
    code: Name
    message: Text


class BlockDone(Message, frozen=True, kw_only=True, tag="block_done"):
    session: Name
    epoch: Count
    block: Count
    frames: Blob
    """Raw RGB8, [frames, height, width, 3]."""
    frame_sha256: Annotated[tuple[Sha256, ...], msgspec.Meta(max_length=MAX_FRAMES)]
    """Taken by the worker over each frame's raw bytes, before any codec."""
    notes: Annotated[tuple[Note, ...], msgspec.Meta(max_length=MAX_FRAMES)]
    compute_s: float
    state_digest: Text = ""
    """Of the state after this block; given for the check blocks after a move, else empty."""


class Held(Message, frozen=True, kw_only=True, tag="held"):
    """A closed list that a copy holds. Whoever closes lists from now on must not close this one anew."""

    session: Name
    block: Count
    changes: Annotated[tuple[Change, ...], msgspec.Meta(max_length=MAX_CHANGES)]


class Left(Message, frozen=True, kw_only=True, tag="left"):
    """A block that has left the gateway: a client that was cut off from an earlier server may lack its frames."""

    session: Name
    block: BlockDone


class Reported(Message, frozen=True, kw_only=True, tag="reported"):
    """All that was held when this link was made has been said on it."""

    worker: Name
    incarnation: Count


class StateDone(Message, frozen=True, kw_only=True, tag="state_done"):
    """What the owner's state was after a block: for records."""

    session: Name
    epoch: Count
    block: Count
    state_digest: Text
    paths: tuple[str, ...]
    leaf_digests: bytes
    """Of each path, in order: ``state.leaf_digests``."""


class Described(Message, frozen=True, kw_only=True, tag="described"):
    session: Name
    request: Count
    block: Count
    """The next block."""
    leaves: tuple[LeafSize, ...]


class Saved(Message, frozen=True, kw_only=True, tag="saved"):
    """The file holds manifest and bytes of the state before ``block``."""

    session: Name
    request: Count
    epoch: Count
    block: Count
    state_digest: Text
    manifest_sha256: Sha256
    manifest_bytes: Count
    num_bytes: Count
    remainders: bytes


class NotDone(Message, frozen=True, kw_only=True, tag="not_done"):
    """A Describe or Save could not be met; ``code`` is that of the error."""

    session: Name
    request: Count
    code: Name
    message: Text


class CheckDone(Message, frozen=True, kw_only=True, tag="check_done"):
    """A retired copy has stepped one block from the input log alone."""

    session: Name
    attempt: Name
    block: Count
    frame_sha256: Annotated[tuple[Sha256, ...], msgspec.Meta(max_length=MAX_FRAMES)]
    state_digest: Text


class Copies(Message, frozen=True, kw_only=True, tag="copies"):
    """Slots in use have changed, or a poll asked."""

    worker: Name
    incarnation: Count
    copies: Annotated[tuple[Copy, ...], msgspec.Meta(max_length=MAX_COPIES)]
    slots_free: Count
    slots_quarantined: Count
    poll: Count = 0
    """The number of the poll that this answers; 0 for none."""


class Alive(Message, frozen=True, kw_only=True, tag="alive"):
    """The worker's event loop has come to this beat."""

    number: Count


class Freed(Message, frozen=True, kw_only=True, tag="freed"):
    session: Name


class LedgerAsk(Message, frozen=True, kw_only=True, tag="ledger_ask"):
    request: Count
    worker: Name
    incarnation: Count
    operation: Operation


class LedgerAnswer(Message, frozen=True, kw_only=True, tag="ledger_answer"):
    request: Count
    answer: Answer


ToWorker = (
    Open
    | Close
    | Inputs
    | Describe
    | Save
    | Acknowledge
    | TakeOver
    | Refused
    | SendAgain
    | Beat
    | Poll
    | Shutdown
    | LedgerAnswer
    | AnyMoveMessage
)
ToServer = (
    Hello
    | Held
    | Left
    | Reported
    | Opened
    | Failed
    | BlockDone
    | StateDone
    | CheckDone
    | Described
    | Saved
    | NotDone
    | Copies
    | Alive
    | Freed
    | LedgerAsk
    | AnyMoveMessage
)
