"""Tickets as they travel: short, typed, refused where they are anything else."""

from typing import TypeVar

import msgspec

from worldmove.errors import TransportError
from worldmove.limits import MAX_TICKET_BYTES

TicketT = TypeVar("TicketT")


def read_ticket(ticket: bytes, kind: type[TicketT], of: str) -> TicketT:
    """Decode a ticket of a kind; ``of`` names its transport in an error. Raises TransportError."""
    if len(ticket) > MAX_TICKET_BYTES:
        raise TransportError(f"a ticket has at most {MAX_TICKET_BYTES} bytes, not {len(ticket)}")
    try:
        return msgspec.msgpack.decode(ticket, type=kind)
    except msgspec.DecodeError as error:
        raise TransportError(f"not a ticket of {of}: {error}") from error
