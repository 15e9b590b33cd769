"""What reaches a destination, filtered: only what its attempt can use gets through. Foreign messages end here."""

import asyncio

from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.incoming import Incoming
from worldmove.move.messages import (
    Abandon,
    AnyMoveMessage,
    Base,
    Begin,
    Boundary,
    Cancel,
    Component,
    Final,
    Handed,
    Inquire,
    Meet,
    Offer,
    Proof,
    Still,
)
from worldmove.move.protocol import DestinationEvent


class DestinationInbox:
    """One offer's messages."""

    def __init__(self, attempt: Attempt) -> None:
        self.is_closed = False
        """Whether the session is closed, and nobody waits for it any more."""
        self._attempt = attempt
        self._items: asyncio.Queue[AnyMoveMessage | None] = asyncio.Queue()

    def put(self, message: AnyMoveMessage) -> None:
        self._items.put_nowait(message)

    def close(self) -> None:
        """The session is closed. Whoever listens hears of it."""
        self.is_closed = True
        self._items.put_nowait(None)

    async def shadow(self, incoming: Incoming) -> None:
        """Hand on what the attempt waits for; raise GaveUpError when there is a reason to."""
        while True:
            message = await self._items.get()
            if message is None:
                raise GaveUpError(DestinationEvent.ABANDON, "closed", "its session was closed")
            if not self._attempt.owns(message):
                continue
            match message:
                case Offer():
                    incoming.repeat_reserved()
                case Begin() | Base() | Final() | Component() | Handed() | Meet() | Still():
                    incoming.take_early(message)
                case Boundary():
                    incoming.take_boundary(message)
                case Proof():
                    incoming.take_proof(message)
                case Cancel():
                    raise GaveUpError(DestinationEvent.ABANDON, "cancelled", "it was cancelled")
                case Abandon(reason=reason, detail=detail):
                    raise GaveUpError(DestinationEvent.ABANDON, reason, detail)

    async def doubt(self, wait_s: float) -> None:
        """Return at a hint that the ledger may answer now, or after ``wait_s``."""
        try:
            async with asyncio.timeout(wait_s):
                while not self.is_closed:
                    message = await self._items.get()
                    if isinstance(message, Inquire) and message.session == self._attempt.session:
                        return
        except TimeoutError:
            return
