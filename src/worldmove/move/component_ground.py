"""What a source does so that a part of its state can be stepped at the destination: a proven copy of it lies aside.

    copy      that part alone, into a free slot at a block boundary          in the engine's thread
    prove     the digests of every group of the copy                         beside the play
    offer     where it lies, again and again, until it was fetched

From before the copy on the engine hands on what that part is stepped on (``move.streaming`` tells it). Nothing here
ends a move: where it fails the state is pulled as ever, and the destination is told so.
"""

import asyncio

from worldmove.errors import MoveRefused, WorldMoveError
from worldmove.move.aside_offers import offer_until
from worldmove.move.attempt import Attempt
from worldmove.move.device_path import export_slot
from worldmove.move.messages import AnyMoveMessage, Begin, Component, Fetched
from worldmove.move.source_copy import Aside, SourceCopy
from worldmove.transport.base import Transport

RESEND_S = 1.0
"""Between two offers, at first."""


class ComponentGround:
    """One attempt's."""

    def __init__(
        self, *, attempt: Attempt, begin: Begin, copy: SourceCopy, transport: Transport, layout_digest: bytes
    ) -> None:
        self.hands = False
        """Whether the destination can use what blocks hand on."""
        self._attempt = attempt
        self._begin = begin
        self._copy = copy
        self._transport = transport
        self._layout_digest = layout_digest
        self._fetched = asyncio.Event()
        self._why_not = ""

    def take(self, message: AnyMoveMessage) -> None:
        """Hear that it was fetched; or that the attempt goes on: what was said may have been lost."""
        match message:
            case Fetched():
                self._fetched.set()
            case Begin() if self._why_not:
                self._say_none()

    async def run(self) -> None:
        """Return when it was fetched, or cannot be."""
        self._copy.handed()
        self.hands = True
        try:
            await self._lay()
        except MoveRefused as error:
            self._give_up(error.detail)
        except WorldMoveError as error:
            self._give_up(str(error))

    async def _lay(self) -> None:
        times = self._attempt.times
        with times.phase("component"):
            aside = await self._copy.component()
        try:
            ticket = await export_slot(self._transport, aside.arena)
            try:
                await self._offer(aside, ticket)
            finally:
                await self._transport.withdraw(ticket)
        finally:
            aside.free()

    async def _offer(self, aside: Aside, ticket: bytes) -> None:
        proof = await self._attempt.prove(
            aside.capture, boundary=aside.block, nonce=self._begin.nonce, layout_digest=self._layout_digest
        )
        await offer_until(
            self._fetched, self._attempt, Component, aside=aside, proof=proof, ticket=ticket, resend_s=RESEND_S
        )

    def _give_up(self, why: str) -> None:
        self.hands, self._why_not = False, why or "it cannot be copied aside"
        self._copy.hush_handed()
        self._say_none()

    def _say_none(self) -> None:
        self._attempt.send(
            self._attempt.peer, Component, block=0, manifest=b"", placement=(), ticket=b"", detail=self._why_not[:2048]
        )
