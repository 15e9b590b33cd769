"""What a source has laid out for an attempt, the attempt that it has set out on, and what it tells of it."""

from worldmove.errors import ProtocolError
from worldmove.move.attempt import Attempt
from worldmove.move.beside import Beside
from worldmove.move.export import Export, Exports
from worldmove.move.groundwork import Groundwork
from worldmove.move.host import Host
from worldmove.move.live_base import LiveBase
from worldmove.move.messages import Abandon, Begin, Cancel, Fetched, Prepare, Start
from worldmove.move.outgoing import Outgoing
from worldmove.move.source_copy import SourceCopy
from worldmove.move.source_inbox import Hint, SourceInbox
from worldmove.move.strategy import Strategy
from worldmove.move.times import Times

OTHERWISE = ("mismatch", "diverged")
"""A destination has other bytes than were proven to it."""


class Undertaking:
    """The one move of a copy that may be under way."""

    def __init__(
        self,
        *,
        host: Host,
        session: str,
        copy: SourceCopy,
        inbox: SourceInbox,
        beside: Beside,
        resend_s: float,
        row_bytes: int | None,
    ) -> None:
        """``resend_s``: silence after which the boundary is sent again. ``row_bytes``: the smallest row of a state."""
        self._host = host
        self._session = session
        self._copy = copy
        self._inbox = inbox
        self._beside = beside
        self._resend_s = resend_s
        self._row_bytes = row_bytes
        self._ground: Groundwork | LiveBase | None = None
        self._exports = Exports(host=host, copy=copy)
        self._out: Outgoing | None = None
        self._comes_to_rest = True
        """Not any more, once its memory was another than it was when its engine had said that nothing writes it."""

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
        if self._ground is not None and self._ground.attempt.id != asked.attempt:
            self._leave_ground()
        self._copy.stay(stays=asked.stays)
        await self._exports.prepare(asked)

    def begin(self, begin: Begin) -> None:
        """Do what comes before the boundary, beside the play; go on with it, if it is begun already."""
        if self._ground is not None and self._ground.attempt.id == begin.attempt:
            self._ground.take(begin)
            return
        export = self._exports.of(begin)
        if export is None:
            self._inbox.spend(begin.attempt)
            self._tell_unprepared(self._attempt(begin, begin.destination, begin.destination_incarnation))
            return
        self._leave_ground()
        ground = self._ground = self._begun(begin, export)
        self._beside.start("groundwork", self._lay(ground))

    async def hear(self, message: Fetched | Abandon) -> None:
        """Take the other end's word about what comes before the boundary, if it is about that."""
        if self._ground is None or not self._ground.attempt.owns(message):
            return
        if isinstance(message, Fetched):
            self._ground.take(message)
        else:
            self._inbox.newest = message.attempt
            self.tell("aborted", Hint(reason=message.reason, detail=message.detail))
            await self.end()

    def set_out(self, start: Start) -> bool:
        """Set out on an attempt, if it was prepared here. Says whether it was."""
        self._note(start)
        export = self._exports.of(start)
        attempt = self._attempt(start, start.destination, start.destination_incarnation)
        if export is None:
            self._tell_unprepared(attempt)
            return False
        ground = self._ground if self._ground is not None and self._ground.attempt.id == start.attempt else None
        self._leave_ground()
        self._out = Outgoing(
            attempt=attempt if ground is None else ground.attempt,
            is_followed=isinstance(ground, Groundwork),
            rows=ground.rows if isinstance(ground, LiveBase) else None,
            is_streamed=isinstance(ground, LiveBase) and ground.is_streamed,
            hands=isinstance(ground, LiveBase) and ground.hands(),
            copy=self._copy,
            nonce=start.nonce,
            layout_digest=export.layout_digest,
            resend_s=self._resend_s,
            says_still=self._comes_to_rest,
        )
        return True

    async def cancel(self, cancel: Cancel) -> None:
        """End an attempt that was not set out on."""
        self._note(cancel)
        ground, why = self._ground, Hint(reason="cancelled", detail="it was cancelled")
        if ground is not None and ground.attempt.id == cancel.attempt:
            self.tell("aborted", why)
        else:
            self._attempt(cancel, "", 0).end("source", "aborted", why.reason, why.detail)
        await self.end()

    async def end(self) -> None:
        """Nothing is under way any more, and nothing is laid out."""
        self._leave_ground()
        self._copy.hush()
        await self.withdraw()
        self._out = None

    async def withdraw(self) -> None:
        """Let nothing of the copy be had any more."""
        await self._exports.withdraw()

    async def looked_into(self, why: Hint) -> Hint:
        """Return why the other end gave up: where its bytes are other ones, by what this end finds in its memory."""
        if self._out is None or why.reason not in OTHERWISE:
            return why
        written = await self._out.written()
        return Hint(reason="engine_wrote", detail=written) if written else why

    def abandon(self, why: Hint) -> None:
        """Tell the other end that this one has given up."""
        attempt = self.out.attempt
        attempt.send(attempt.peer, Abandon, reason=why.reason, detail=why.detail[:2048])

    def tell(self, outcome: str, why: Hint) -> None:
        """Tell the controller what became of the attempt, if there is one."""
        if why.reason == "engine_wrote":
            self._comes_to_rest = False
        if self._out is not None:
            self._out.tell(outcome, why.reason, why.detail)
        elif self._ground is not None:
            self._ground.attempt.end("source", outcome, why.reason, why.detail)

    async def tell_committed(self) -> None:
        """The same, with the digest of what was moved."""
        if self._out is not None:
            await self._out.take_state_digest()
            self.tell("committed", Hint(reason="done", detail=""))

    def _begun(self, begin: Begin, export: Export) -> Groundwork | LiveBase:
        attempt = self._attempt(begin, begin.destination, begin.destination_incarnation)
        if begin.strategy in (Strategy.PRE_COPY.value, Strategy.STREAMING.value):
            return LiveBase(attempt=attempt, begin=begin, copy=self._copy, export=export, row_bytes=self._row_bytes)
        return Groundwork(
            attempt=attempt,
            begin=begin,
            copy=self._copy,
            transport=export.transport,
            layout_digest=export.layout_digest,
            resend_s=self._resend_s,
        )

    async def _lay(self, ground: Groundwork | LiveBase) -> None:
        """Do the groundwork. Where it fails the attempt is over here."""
        if not await ground.run():
            self._inbox.newest = ground.attempt.id
            if self._ground is ground:
                self._ground = None
                self._copy.hush()
                await self.withdraw()

    def _leave_ground(self) -> None:
        self._beside.end("groundwork")
        self._ground = None

    def _tell_unprepared(self, attempt: Attempt) -> None:
        attempt.end("source", "aborted", "not_prepared", "nothing was prepared for this attempt")

    def _note(self, message: Start | Cancel) -> None:
        """Remember that this attempt is begun, or over."""
        if self._exports.of(message) is None:
            self._inbox.spend(message.attempt)
        else:
            self._inbox.newest = message.attempt

    def _attempt(self, message: Begin | Start | Cancel, peer: str, peer_incarnation: int) -> Attempt:
        return Attempt(
            host=self._host,
            session=self._session,
            id=message.attempt,
            epoch=self._inbox.epoch,
            peer=peer,
            peer_incarnation=peer_incarnation,
            times=Times(self._host.clock),
        )
