"""The source's driver: take what gets through the filter, ask the table, do the one thing, name what came of it.

One driver goes with a copy from the moment it is played until its slot is free. Each method below ``run`` does
one effect of the table and returns the next event; which effect comes next is the table's business alone.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from worldmove.move.beside import Beside
from worldmove.move.host import Host
from worldmove.move.inquiry import Inquiry
from worldmove.move.messages import Abandon, AnyMoveMessage, Begin, Cancel, Fetched, Prepare, Start
from worldmove.move.patience import STILL_S
from worldmove.move.phase_log import PhaseLog
from worldmove.move.protocol import SourceEffect, SourceEvent, SourcePhase, source_step
from worldmove.move.reply import gone
from worldmove.move.source_copy import SourceCopy
from worldmove.move.source_inbox import Hint, Passed, Refused, SourceInbox, TakenOver
from worldmove.move.undertaking import Undertaking
from worldmove.move.until import Failure, given_up, until_given_up

__all__ = ["Refused", "Source", "SourceConfig", "TakenOver"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """How long a source waits, in seconds. No wait here decides who owns a session."""

    frozen_s: float = STILL_S
    """From the freeze to the proof; longer, and the move is given up.

    Whoever plays stands still meanwhile, and nothing is in doubt yet: what is slower than this, or stalled, is
    better not moved than waited for.
    """
    meet_s: float = 10.0
    """From the order to freeze to the block at which a follower is met. The world is played meanwhile."""
    settle_s: float = 3.0
    """From the order to freeze until the session stands before a block. The world is played meanwhile."""
    resend_s: float = 1.0
    """Silence after which the boundary is sent again."""
    row_bytes: int | None = None
    """The smallest row of a state that a destination is to find again wherever it lies. None goes by its size."""
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
        waits_for_failover: bool = False,
    ) -> None:
        """Take over a copy that is played in ``epoch``; or one that is retired since, with its boundary.

        ``waits_for_failover``: it was made of a snapshot, and is behind what was shown. Only a failover says what to
        replay: whatever else may have given the session to this worker, it holds no copy that could play it.
        """
        self.session = session
        self.epoch = epoch
        self.phase = SourcePhase.LIVE if retired_at is None else SourcePhase.RETIRED
        self.was_asked = False
        """Whether it has heard of a move, or that it was replaced, while the copy was played."""
        self._waits_for_failover = waits_for_failover
        self._host = host
        self._copy = copy
        self._config = config or SourceConfig()
        self._inbox = inbox = SourceInbox(session, epoch)
        self._beside = beside = Beside()
        self._move = Undertaking(
            host=host,
            session=session,
            copy=copy,
            inbox=inbox,
            beside=beside,
            resend_s=self._config.resend_s,
            row_bytes=self._config.row_bytes,
        )
        self._inquiry = Inquiry(host=host, session=session, copy=copy, inbox=inbox, boundary=retired_at)
        self._log = PhaseLog(host, side="source", session=session)
        self._why = Hint()
        self._effects = self._carried_out()

    def _carried_out(self) -> Mapping[SourceEffect, Callable[[], Awaitable[SourceEvent]]]:
        """Return what carries each effect of the table out."""
        return {
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
        why = Hint(reason=reason, detail=detail)
        if self.phase is SourcePhase.FROZEN:
            self._move.abandon(why)
        if self.phase in (SourcePhase.LIVE, SourcePhase.FROZEN):
            self._move.tell("aborted", why)

    async def run(self) -> None:
        """Drive the copy until its slot is free. However it ends, nothing of the copy can be had any more."""
        try:
            async with self._beside:
                event = await (self._live() if self.phase is SourcePhase.LIVE else self._retired())
                while True:
                    before = self.phase
                    self.phase, effect = source_step(before, event)
                    self._log.note(before, self.phase, event, attempt=self._inbox.newest, epoch=self.epoch)
                    if effect is SourceEffect.FREE:
                        break
                    event = await self._effects[effect]()
        finally:
            self._log.write()
            await self._move.withdraw()
        self._copy.free()

    # one effect each: do it, and say what came of it

    async def _freeze(self) -> SourceEvent:
        self._log.write()  # the world plays on until its block boundary
        out, config = self._move.out, self._config
        failure = await self._unless_given_up(out.meet(), config.meet_s) if out.is_followed else None
        failure = failure or await self._unless_given_up(out.settle(), config.settle_s)
        failure = failure or await self._unless_given_up(out.run(), config.frozen_s)
        if failure is None:
            return SourceEvent.READY
        ended = given_up(failure, on_time_out=SourceEvent.TIME_OUT, otherwise=SourceEvent.CANCEL)
        self._why = Hint(reason=ended.reason, detail=ended.detail)
        event: SourceEvent = ended.event
        return event

    async def _unless_given_up(self, work: Coroutine[Any, Any, None], limit_s: float) -> Failure | None:
        out = self._move.out
        return await until_given_up(work, self._inbox.frozen(out.attempt, out.ready, out.landed), limit_s)

    async def _supersede(self) -> SourceEvent:
        self._copy.supersede()
        why = Hint(reason="superseded", detail="the ledger's row has a later epoch than this copy")
        self._move.tell("aborted", why)
        await self._move.end()  # no proof was sent: whatever has made the later epoch, it was not this attempt
        return await self._inquire()

    async def _thaw_unasked(self) -> SourceEvent:
        self._copy.thaw(self.epoch)
        self._move.abandon(self._why)
        self._beside.start("close", self._close_beside())
        self._move.tell("aborted", self._why)
        return await self._live()

    async def _send_proof(self) -> SourceEvent:
        out = self._move.out
        out.send_proof()
        hint = await self._inbox.doubt(out.attempt, self._config.proof_retry_s)
        if hint is None:
            return SourceEvent.SILENCE if out.num_proofs < self._config.num_proofs else SourceEvent.TIME_OUT
        self._why = await self._move.looked_into(hint)
        return SourceEvent.CANCEL if hint.reason else SourceEvent.TIME_OUT

    async def _inquire(self) -> SourceEvent:
        event = self._inquiry.event(await self._inquiry.close(), self.phase)
        if event is SourceEvent.YOURS and self._waits_for_failover:
            self._say_gone()
            event = None
        if event is not None:
            return event
        if self.phase is SourcePhase.RETIRED:
            return await self._retired()
        self._move.tell("in_doubt", Hint(reason="no_answer", detail="the ledger has not answered yet"))
        return await self._pause()

    async def _hold(self) -> SourceEvent:
        """Wait, then ask for it back: granted only where the new owner is gone or suspected, and showed nothing."""
        await self._move.tell_committed()
        await self._pause()
        event = self._inquiry.event(await self._inquiry.reclaim(), self.phase)
        return SourceEvent.YOURS if event is SourceEvent.YOURS else SourceEvent.TIME_OUT

    async def _thaw(self) -> SourceEvent:
        why = self._why
        if self._inquiry.row_epoch > self.epoch:
            why = Hint(reason="reclaimed", detail="the new owner had shown no block, and ended or did not answer")
        self._play_in(self._inquiry.row_epoch)
        self._copy.thaw(self.epoch)
        closed = Hint(reason="closed", detail="it was closed before its commit")
        self._move.tell("aborted", why if why.reason else closed)
        return await self._live()

    async def _check(self) -> SourceEvent:
        await self._move.tell_committed()
        self._inquiry.boundary = self._copy.reach[1]
        self._copy.retire(self._inbox.newest if self._move.attempt else "")
        return await self._retired()

    def _say_gone(self) -> None:
        """The ledger names this worker as the owner, and this copy cannot play on from there."""
        self._host.post(gone(self._host, self.session, self._inquiry.row_epoch))

    async def _replay(self) -> SourceEvent:
        self._waits_for_failover = False
        self._play_in(self._inquiry.row_epoch)
        self._copy.replay(self.epoch, self._inquiry.next_shown)
        return await self._live()

    # waiting

    async def _live(self) -> SourceEvent:
        self._log.write()
        await self._move.end()
        self._why, self._inquiry.boundary = Hint(), None
        while True:
            heard = await self._inbox.live()
            self.was_asked = True
            match heard:
                case Prepare() as asked:
                    await self._move.prepare(asked)
                case Begin() as begin:
                    self._move.begin(begin)
                case Fetched() | Abandon() as message:
                    await self._move.hear(message)
                case Start() as start:
                    if self._move.set_out(start):
                        return SourceEvent.START
                case Cancel() as cancel:
                    await self._move.cancel(cancel)
                case Refused():
                    return SourceEvent.REFUSED

    async def _retired(self) -> SourceEvent:
        self._log.write()
        if not self._beside.has("passed"):
            self._beside.start("passed", self._await_passed())
        match await self._inbox.retired(self._config.retired_inquire_s):
            case Passed():
                return SourceEvent.DONE
            case TakenOver(epoch=epoch, block=block):
                self._inquiry.taken_over(epoch, block)
                return SourceEvent.FAILOVER
            case None:
                return SourceEvent.TIME_OUT

    async def _pause(self) -> SourceEvent:
        """Wait a little before the ledger is asked again, or until there is a reason to ask."""
        self._log.write()
        hint = await self._inbox.doubt(self._move.attempt, self._config.inquire_s)
        self._why = self._why if hint is None else await self._move.looked_into(hint)
        return SourceEvent.TIME_OUT

    async def _close_beside(self) -> None:
        await self._inquiry.close()

    async def _await_passed(self) -> None:
        await self._copy.passed(self._inquiry.boundary or 0)
        self._inbox.put(Passed(epoch=self.epoch))

    def _play_in(self, epoch: int) -> None:
        self.epoch = self._inbox.epoch = self._inquiry.row_epoch = epoch
        self._beside.end("passed")
