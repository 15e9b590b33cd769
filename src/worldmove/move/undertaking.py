"""What a source has laid out for an attempt, the attempt that it has set out on, and what it tells of it."""

from worldmove.errors import ProtocolError
from worldmove.move.attempt import Attempt
from worldmove.move.export import Exports
from worldmove.move.hosts import Host, SourceCopy
from worldmove.move.messages import Abandon, Cancel, Prepare, Start
from worldmove.move.outgoing import Outgoing
from worldmove.move.source_inbox import Hint, SourceInbox
from worldmove.move.times import Times


class Undertaking:
    """The one move of a copy that may be under way."""

    def __init__(self, *, host: Host, session: str, copy: SourceCopy, inbox: SourceInbox, resend_s: float) -> None:
        """``resend_s``: silence after which the boundary is sent again."""
        self._host = host
        self._session = session
        self._copy = copy
        self._inbox = inbox
        self._resend_s = resend_s
        self._exports = Exports(host=host, copy=copy)
        self._out: Outgoing | None = None

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that it has set out on, if any."""
        return self._out.attempt if self._out else None

    @property
    def out(self) -> Outgoing:
        """The state on its way out. Raises ProtocolError where there is no attempt."""
        if self._out is None:
            raise ProtocolError(f"{self._session} has no attempt under way")
        return self._out

    async def prepare(self, asked: Prepare) -> None:
        """Lay out what an attempt needs to know and to read."""
        await self._exports.prepare(asked)

    def set_out(self, start: Start) -> bool:
        """Set out on an attempt, if it was prepared here. Says whether it was."""
        self._note(start)
        export = self._exports.of(start)
        attempt = self._attempt(start, start.destination, start.destination_incarnation)
        if export is None:
            attempt.end("source", "aborted", "not_prepared", "nothing was prepared for this attempt")
            return False
        self._out = Outgoing(
            attempt=attempt,
            copy=self._copy,
            nonce=start.nonce,
            layout_digest=export.layout_digest,
            resend_s=self._resend_s,
        )
        return True

    async def cancel(self, cancel: Cancel) -> None:
        """End an attempt that was not set out on."""
        self._note(cancel)
        self._attempt(cancel, "", 0).end("source", "aborted", "cancelled", "it was cancelled")
        await self.withdraw()

    async def end(self) -> None:
        """Nothing is under way any more, and nothing is laid out."""
        await self.withdraw()
        self._out = None

    async def withdraw(self) -> None:
        """Let nothing of the copy be had any more."""
        await self._exports.withdraw()

    def abandon(self, why: Hint) -> None:
        """Tell the other end that this one has given up."""
        attempt = self.out.attempt
        attempt.send(attempt.peer, Abandon, reason=why.reason, detail=why.detail[:2048])

    def tell(self, outcome: str, why: Hint) -> None:
        """Tell the controller what became of the attempt, if there is one."""
        if self._out is not None:
            self._out.tell(outcome, why.reason, why.detail)

    async def tell_committed(self) -> None:
        """The same, with the digest of what was moved."""
        if self._out is not None:
            await self._out.take_state_digest()
            self.tell("committed", Hint(reason="done", detail=""))

    def _note(self, message: Start | Cancel) -> None:
        """Remember that this attempt is begun, or over."""
        if self._exports.of(message) is None:
            self._inbox.spend(message.attempt)
        else:
            self._inbox.newest = message.attempt

    def _attempt(self, message: Start | Cancel, peer: str, peer_incarnation: int) -> Attempt:
        return Attempt(
            host=self._host,
            session=self._session,
            id=message.attempt,
            epoch=self._inbox.epoch,
            peer=peer,
            peer_incarnation=peer_incarnation,
            times=Times(self._host.clock),
        )
