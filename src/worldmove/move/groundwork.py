"""What a source does for an attempt before it is frozen: a snapshot is copied aside, and lies there to be read.

    snapshot   its state, copied into a free slot at a block boundary        in the engine's thread
    prove      the digests of every group of the copy                        beside the play
    offer      where it lies, again and again, until it was fetched

The session is played on throughout, and nothing here has a part in who owns it. However it ends, the slot is free.
"""

import asyncio

from worldmove.move.aside_offers import offer_until
from worldmove.move.attempt import Attempt
from worldmove.move.device_path import export_slot
from worldmove.move.early import early_part
from worldmove.move.messages import AnyMoveMessage, Base, Begin, Fetched
from worldmove.move.patience import Patience
from worldmove.move.source_copy import SourceCopy


class Groundwork:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        begin: Begin,
        copy: SourceCopy,
        transport: str,
        layout_digest: bytes,
        resend_s: float,
    ) -> None:
        """``resend_s``: silence after which the base is offered again, at first."""
        self.attempt = attempt
        self._begin = begin
        self._copy = copy
        self._transport = attempt.host.transports[transport]
        self._layout_digest = layout_digest
        self._resend_s = resend_s
        self._fetched = asyncio.Event()
        self._patience = Patience(patience_s=begin.patience_s, lease_s=begin.lease_s)

    def take(self, message: AnyMoveMessage) -> None:
        """Hear that the attempt goes on, or that the base was fetched."""
        match message:
            case Begin():
                self._patience.renew()
            case Fetched() if self.attempt.owns(message):
                self._fetched.set()

    async def run(self) -> bool:
        """Say whether the base was fetched. If not, the attempt is given up, and whoever has a part in it was told."""
        return await early_part(self.attempt, self._patience, self._lay(), "the snapshot was not fetched")

    async def _lay(self) -> None:
        times = self.attempt.times
        with times.phase("snapshot"):
            aside = await self._copy.snapshot()
        try:
            with times.phase("snapshot_digest"):
                proof = await self.attempt.prove(
                    aside.capture, boundary=aside.block, nonce=self._begin.nonce, layout_digest=self._layout_digest
                )
            ticket = await export_slot(self._transport, aside.arena)
            try:
                await offer_until(
                    self._fetched, self.attempt, Base, aside=aside, proof=proof, ticket=ticket, resend_s=self._resend_s
                )
            finally:
                await self._transport.withdraw(ticket)
        finally:
            aside.free()
