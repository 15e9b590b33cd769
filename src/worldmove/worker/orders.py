"""What a server says to a worker."""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_COUNT
from worldmove.move.ledger_messages import Answer, Count, Name
from worldmove.move.message import Blob, Nonce, Seconds, Text
from worldmove.move.messages import AnyMoveMessage
from worldmove.worker.message import Changes, InTime, Message, OfSession, SnapshotFacts


class Open(OfSession, frozen=True, kw_only=True, tag="open"):
    """Begin a session. The answer is Opened, or Failed."""

    epoch: Count
    seed: Annotated[int, msgspec.Meta(ge=0, lt=MAX_COUNT)]
    picture: Blob | None = None
    """A raw RGB frame: begin from this picture alone (a throw-away copy, never in the ledger)."""
    saved: Text = ""
    """A file of this host that holds a saved world: go on from it."""


class Close(OfSession, frozen=True, kw_only=True, tag="close"):
    """End a session, or a throw-away copy. The answer is Freed."""


class Inputs(OfSession, frozen=True, kw_only=True, tag="inputs"):
    """Block ``block``'s closed list. Sent to every holder of the session; each keeps what it still needs."""

    block: Count
    changes: Changes
    account: bool = False
    """Whether the owner is to send a StateDone after this block."""


class Describe(OfSession, frozen=True, kw_only=True, tag="describe"):
    """Say which leaves a session that is played here has. The answer is Described, or NotDone."""

    request: Count


class Save(OfSession, frozen=True, kw_only=True, tag="save"):
    """Write a session's state at its next boundary to a new file of this host. The answer is Saved, or NotDone."""

    request: Count
    path: Text


class TakeSnapshot(OfSession, frozen=True, kw_only=True, tag="take_snapshot"):
    """Copy a session's state aside at its next boundary, for another worker to keep. SnapshotTaken, or NotDone."""

    request: Count
    transport: Name
    nonce: Nonce


class DropSnapshot(OfSession, frozen=True, kw_only=True, tag="drop_snapshot"):
    """Nobody reads the snapshot of this request any more: free its slot."""

    request: Count


class Expect(OfSession, frozen=True, kw_only=True, tag="expect"):
    """A snapshot of this session is to be kept here: hold its lists from now on, as long as it may need them."""


class Keep(OfSession, frozen=True, kw_only=True, tag="keep"):
    """Pull a snapshot, prove it, and keep it in the place of an older one. The answer is Kept, or NotDone."""

    request: Count
    snapshot: SnapshotFacts
    transport: Name
    nonce: Nonce


class LetGo(OfSession, frozen=True, kw_only=True, tag="let_go"):
    """Keep no snapshot of this session any more, and none of its lists for one."""

    only: InTime | None = None
    """Later than that a snapshot stays: who keeps the newer one may be dead by then. None: it is to go in any case."""


class Pass(OfSession, frozen=True, kw_only=True, tag="pass"):
    """Another worker keeps a snapshot that is newer, or none is kept: this copy need not stay once it has retired."""

    only: InTime | None = None
    """Later than that it stays. None: it need not in any case."""


class Revive(OfSession, frozen=True, kw_only=True, tag="revive"):
    """The owner is gone: install the snapshot of this boundary, as a retired copy that may take over.

    ``epoch``: the row's. What was granted up to it was not meant for this copy, to whichever worker it was.
    ``next_block``: the next to be shown. Once it has left, somebody else plays, and the copy is not needed.
    """

    epoch: Count
    block: Count
    next_block: Count


class GiveUp(OfSession, frozen=True, kw_only=True, tag="give_up"):
    """This copy has replayed other frames than were shown: it is not the session, and must not go on."""

    epoch: Count
    why: Text


class Acknowledge(OfSession, frozen=True, kw_only=True, tag="acknowledge"):
    """The gateway has taken block ``block`` of this epoch, and it has left for the client."""

    epoch: Count
    block: Count
    server_life: Count


class TakeOver(OfSession, frozen=True, kw_only=True, tag="take_over"):
    """The ledger has granted the session to this worker's retired copy (failover): replay the lists, then play.

    ``block`` is the next to be shown; earlier ones are computed and not sent.
    """

    epoch: Count
    block: Count


class Refused(OfSession, frozen=True, kw_only=True, tag="refused"):
    """A frame or a report of this worker's copy was of an older epoch than the ledger's row, which has ``epoch``."""

    epoch: Count


class SendAgain(OfSession, frozen=True, kw_only=True, tag="send_again"):
    """Frames of the session's owner may have been dropped: send again what is not acknowledged."""


class Beat(Message, frozen=True, kw_only=True, tag="beat"):
    """Answer with an Alive of this number. An answer shows that both directions of the link carry."""

    number: Count
    block_s: Seconds = 0.0
    """What a block takes there beside the worlds of other workers on its device, in the long run; 0: not known, or it
    shares its device with none.
    """
    empties: bool = False
    """Its sessions are being moved away: it is to end when it is told to."""


class Poll(Message, frozen=True, kw_only=True, tag="poll"):
    """Say what you hold. The answer is a Copies with the poll's number."""

    poll: Count


class Shutdown(Message, frozen=True, kw_only=True, tag="shutdown"):
    """End cleanly: finish the block in hand, free everything, exit with 0."""


class LedgerAnswer(Message, frozen=True, kw_only=True, tag="ledger_answer"):
    """What the ledger answers to the LedgerAsk of this number."""

    request: Count
    answer: Answer


ToWorker = (
    Open
    | Close
    | Inputs
    | Describe
    | Save
    | TakeSnapshot
    | DropSnapshot
    | Expect
    | Keep
    | LetGo
    | Pass
    | Revive
    | GiveUp
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
