"""The source's driver: take what gets through the filter, ask the table, do the one thing, name what came of it.

One driver goes with a copy from the moment it is played until its slot is free. Each method below ``run`` does
one effect of the table and returns the next event; which effect comes next is the table's business alone.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from worldmove.errors import ProtocolError
from worldmove.move.answers import source_event
from worldmove.move.attempt import Attempt
from worldmove.move.beside import Beside
from worldmove.move.export import Exports
from worldmove.move.hosts import Host, SourceCopy
from worldmove.move.ledger_messages import Answer, Theirs, Yours
from worldmove.move.messages import Abandon, AnyMoveMessage, Cancel, Prepare, Start
from worldmove.move.outgoing import Outgoing
from worldmove.move.protocol import SourceEffect, SourceEvent, SourcePhase, source_step
from worldmove.move.questions import close, reclaim
from worldmove.move.source_inbox import Hint, Passed, Refused, SourceInbox, TakenOver
from worldmove.move.times import Times
from worldmove.move.until import given_up, until_given_up

__all__ = ["Refused", "Source", "SourceConfig", "TakenOver"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """How long a source waits, in seconds. No wait here decides who owns a session."""

    frozen_s: float = 2.0
    """From the order to freeze to the proof; longer, and the move is given up.

    Whoever plays stands still meanwhile, and nothing is in doubt yet: what is slower than this, or stalled, is
    better not moved than waited for.
    """
    resend_s: float = 1.0
    """Silence after which the boundary is sent again."""
    proof_retry_s: float = 0.5
    """Silence after which the proof is sent again."""
    num_proofs: int = 3
    """How often it is sent before the ledger is asked, which closes the attempt."""
    inquire_s: float = 0.25
    """Between two questions to the ledger."""
    retired_inquire_s: float = 5.0


class Source:
    """Drives one copy: played, frozen, in doubt, superseded, retired, free."""

    def __init__(
        self,
        *,
        host: Host,
        session: str,
        copy: SourceCopy,
        epoch: int,
        config: SourceConfig | None = None,
        retired_at: int | None = None,
    ) -> None:
        """Take over a copy that is played in ``epoch``; or one that is retired since, with its boundary."""
        self.session = session
        self.epoch = epoch
        self.phase = SourcePhase.LIVE if retired_at is None else SourcePhase.RETIRED
        self._host = host
        self._copy = copy
        self._config = config or SourceConfig()
        self._inbox = SourceInbox(session, epoch)
        self._beside = Beside()
        self._exports = Exports(host=host, copy=copy)
        self._out: Outgoing | None = None
        self._why = Hint()
        self._boundary = retired_at
        self._row_epoch = epoch
        self._next_shown = 0
        self._effects: Mapping[SourceEffect, Callable[[], Awaitable[SourceEvent]]] = {
            SourceEffect.FREEZE: self._freeze,
            SourceEffect.SUPERSEDE: self._supersede,
            SourceEffect.THAW_UNASKED: self._thaw_unasked,
            SourceEffect.SEND_PROOF: self._send_proof,
            SourceEffect.INQUIRE: self._inquire,
            SourceEffect.THAW: self._thaw,
            SourceEffect.HOLD: self._hold,
            SourceEffect.CHECK: self._check,
            SourceEffect.REPLAY: self._replay,
        }

    def deliver(self, item: AnyMoveMessage | Refused | TakenOver) -> None:
        """Take a message of this session, or a fact of its play. What does not concern it now is dropped."""
        self._inbox.put(item)

    def give_up(self, reason: str, detail: str) -> None:
        """The copy is broken, and this driver is ended next: say so to whoever has a part in its move."""
        if self._out is not None and self.phase is SourcePhase.FROZEN:
            attempt = self._out.attempt
            attempt.send(attempt.peer, Abandon, reason=reason, detail=detail[:2048])
            self._tell("aborted", Hint(reason=reason, detail=detail))

    async def run(self) -> None:
        """Drive the copy until its slot is free. However it ends, nothing of the copy can be had any more."""
        try:
            async with self._beside:
                event = await (self._live() if self.phase is SourcePhase.LIVE else self._retired())
                while True:
                    before = self.phase
                    self.phase, effect = source_step(before, event)
                    self._log(before, event)
                    if effect is SourceEffect.FREE:
                        break
                    event = await self._effects[effect]()
        finally:
            await self._exports.withdraw()
        self._copy.free()

    async def _freeze(self) -> SourceEvent:
        out = self._outgoing()
        listening = self._inbox.frozen(out.attempt, out.landed)
        failure = await until_given_up(out.run(), listening, self._config.frozen_s)
        if failure is None:
            return SourceEvent.READY
        ended = given_up(failure, on_time_out=SourceEvent.TIME_OUT, otherwise=SourceEvent.CANCEL)
        self._why = Hint(reason=ended.reason, detail=ended.detail)
        event: SourceEvent = ended.event
        return event

    async def _supersede(self) -> SourceEvent:
        self._copy.supersede()
        self._tell("aborted", Hint(reason="superseded", detail="the ledger's row has a later epoch than this copy"))
        return await self._inquire()

    async def _thaw_unasked(self) -> SourceEvent:
        attempt = self._outgoing().attempt
        self._copy.thaw(self.epoch)
        attempt.send(attempt.peer, Abandon, reason=self._why.reason, detail=self._why.detail[:2048])
        self._beside.start("close", self._close_beside())
        self._tell("aborted", self._why)
        return await self._live()

    async def _send_proof(self) -> SourceEvent:
        out = self._outgoing()
        out.send_proof()
        hint = await self._inbox.doubt(out.attempt, self._config.proof_retry_s)
        if hint is None:
            return SourceEvent.SILENCE if out.num_proofs < self._config.num_proofs else SourceEvent.TIME_OUT
        self._why = hint
        return SourceEvent.CANCEL if hint.reason else SourceEvent.TIME_OUT

    async def _inquire(self) -> SourceEvent:
        event = self._event(await self._close())
        if event is not None:
            return event
        if self.phase is SourcePhase.RETIRED:
            return await self._retired()
        self._tell("in_doubt", Hint(reason="no_answer", detail="the ledger has not answered yet"))
        return await self._pause()

    async def _hold(self) -> SourceEvent:
        """Wait, then ask for it back: granted only where the new owner is gone or suspected, and showed nothing."""
        await self._tell_committed()
        await self._pause()
        event = self._event(await self._reclaim())
        return SourceEvent.YOURS if event is SourceEvent.YOURS else SourceEvent.TIME_OUT

    async def _thaw(self) -> SourceEvent:
        why = self._why
        if self._row_epoch > self.epoch:
            why = Hint(reason="reclaimed", detail="the new owner had shown no block, and ended or did not answer")
        self._play_in(self._row_epoch)
        self._copy.thaw(self.epoch)
        self._tell("aborted", why if why.reason else Hint(reason="closed", detail="it was closed before its commit"))
        return await self._live()

    async def _check(self) -> SourceEvent:
        await self._tell_committed()
        self._boundary = self._copy.reach[1]
        self._copy.retire(self._inbox.newest if self._out else "")
        return await self._retired()

    async def _replay(self) -> SourceEvent:
        self._play_in(self._row_epoch)
        self._copy.replay(self.epoch, self._next_shown)
        return await self._live()

    # waiting

    async def _live(self) -> SourceEvent:
        await self._exports.withdraw()
        self._out, self._why, self._boundary = None, Hint(), None
        while True:
            match await self._inbox.live():
                case Prepare() as asked:
                    await self._exports.prepare(asked)
                case Start() as start:
                    self._note(start)
                    if self._begin(start):
                        return SourceEvent.START
                case Cancel() as cancel:
                    self._note(cancel)
                    self._attempt(cancel, "", 0).end("source", "aborted", "cancelled", "it was cancelled")
                    await self._exports.withdraw()
                case Refused():
                    return SourceEvent.REFUSED

    async def _retired(self) -> SourceEvent:
        if not self._beside.has("passed"):
            self._beside.start("passed", self._await_passed())
        match await self._inbox.retired(self._config.retired_inquire_s):
            case Passed():
                return SourceEvent.DONE
            case TakenOver(epoch=epoch, block=block):
                self._row_epoch, self._next_shown = epoch, block
                return SourceEvent.FAILOVER
            case None:
                return SourceEvent.TIME_OUT

    async def _close_beside(self) -> None:
        await self._close()

    async def _await_passed(self) -> None:
        await self._copy.passed(self._boundary or 0)
        self._inbox.put(Passed(epoch=self.epoch))

    async def _pause(self) -> SourceEvent:
        """Wait a little before the ledger is asked again, or until there is a reason to ask."""
        attempt = self._out.attempt if self._out else None
        self._why = await self._inbox.doubt(attempt, self._config.inquire_s) or self._why
        return SourceEvent.TIME_OUT

    # asking and telling

    async def _close(self) -> Answer | None:
        """Inquire, which closes."""
        boundary = self._copy.reach[1] if self._boundary is None else self._boundary
        asked = close(self._host, self.session, self._inbox.newest, epoch=self.epoch, boundary=boundary)
        return await self._host.ledger.ask(asked)

    async def _reclaim(self) -> Answer | None:
        asked = reclaim(self._host, self.session, epoch=self._row_epoch, reach=self._copy.reach)
        return await self._host.ledger.ask(asked)

    def _event(self, answer: Answer | None) -> SourceEvent | None:
        """Name an answer, and note the epoch that it tells of."""
        event = source_event(answer, phase=self.phase, epoch=self.epoch)
        if event is not None and isinstance(answer, Yours | Theirs):
            self._row_epoch = answer.epoch
        if event is SourceEvent.FAILOVER and isinstance(answer, Yours):
            self._next_shown = answer.replay_to or 0
        return event

    def _note(self, message: Start | Cancel) -> None:
        """Remember that this attempt is begun, or over."""
        if self._exports.of(message) is None:
            self._inbox.spend(message.attempt)
        else:
            self._inbox.newest = message.attempt

    def _begin(self, start: Start) -> bool:
        """Set out on an attempt, if it was prepared here."""
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
            resend_s=self._config.resend_s,
        )
        return True

    def _attempt(self, message: Start | Cancel, peer: str, peer_incarnation: int) -> Attempt:
        return Attempt(
            host=self._host,
            session=self.session,
            id=message.attempt,
            epoch=self.epoch,
            peer=peer,
            peer_incarnation=peer_incarnation,
            times=Times(self._host.clock),
        )

    def _outgoing(self) -> Outgoing:
        if self._out is None:
            raise ProtocolError(f"{self.session} has no attempt while {self.phase.value}")
        return self._out

    def _play_in(self, epoch: int) -> None:
        self.epoch = self._inbox.epoch = self._row_epoch = epoch
        self._beside.end("passed")

    def _log(self, before: SourcePhase, event: SourceEvent) -> None:
        if self.phase is not before:
            self._host.log(
                "move_phase",
                side="source",
                phase=self.phase.value,
                before=before.value,
                why=event.name.lower(),
                session=self.session,
                attempt=self._inbox.newest,
                epoch=self.epoch,
            )

    def _tell(self, outcome: str, why: Hint) -> None:
        if self._out is not None:
            self._out.tell(outcome, why.reason, why.detail)

    async def _tell_committed(self) -> None:
        if self._out is not None and self.phase is not SourcePhase.SUPERSEDED:
            await self._out.take_state_digest()
            self._tell("committed", Hint(reason="done", detail=""))
