"""The root of the messages of a move, the shapes inside, and their bounds."""

from typing import Annotated

import msgspec

from worldmove.limits import MAX_BLOB_BYTES, MAX_NODES, MAX_TEXT, MAX_TICKET_BYTES, MAX_WAIT_S
from worldmove.move.ledger_messages import AttemptId, Count, Name

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Nonce = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Blob = Annotated[bytes, msgspec.Meta(max_length=MAX_BLOB_BYTES)]
Ticket = Annotated[bytes, msgspec.Meta(max_length=MAX_TICKET_BYTES)]
Fields = Annotated[dict[Name, Text], msgspec.Meta(max_length=512)]
"""An environment's."""
Placement = Annotated[tuple[Count, ...], msgspec.Meta(max_length=MAX_NODES)]
"""A storage for each leaf that there may be."""
Groups = Annotated[bytes, msgspec.Meta(max_length=16 << 20)]
"""16 bytes of each, one after the other; of 1 MiB each: a state of a tebibyte."""
Seconds = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""A number: what is none, or endless, could be waited for or added up by nobody."""
MAX_PATHS = 4096
MAX_ROLLED = 1 << 16
Rolls = Annotated[dict[Text, tuple[Count, Count, Count]], msgspec.Meta(max_length=MAX_ROLLED)]
RowBytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
Paths = Annotated[tuple[Text, ...], msgspec.Meta(max_length=MAX_PATHS)]
MAX_HANDED_BYTES = 4 << 20
Wait = Annotated[float, msgspec.Meta(gt=0, le=MAX_WAIT_S)]
Phases = Annotated[tuple[tuple[Name, Seconds, Seconds], ...], msgspec.Meta(max_length=64)]

CONTROLLER = "controller"


class MoveMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What every message of a move carries. ``epoch`` is the source's; ``incarnation`` is the sender's."""

    to: Name
    sender: Name
    incarnation: Count
    session: Name
    attempt: AttemptId
    epoch: Count
