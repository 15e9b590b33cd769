"""The destination's driver: take what gets through the filter, ask the table, do the one thing, name what came of it.

One driver goes with an offer, until the copy is played, retired, or discarded and its slot given back. From its
first commit on it is in doubt: it asks again, never inquires, and never frees its copy because time has passed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from worldmove.errors import MoveRefused, ProtocolError
from worldmove.move.answers import destination_event
from worldmove.move.attempt import Attempt
from worldmove.move.destination_inbox import DestinationInbox
from worldmove.move.fetching import FetchingConfig
from worldmove.move.host import Host
from worldmove.move.incoming import Incoming
from worldmove.move.ledger_messages import Answer, Theirs, Yours
from worldmove.move.messages import CONTROLLER, Abandon, AnyMoveMessage, Declined, Gone, Inquire, Offer
from worldmove.move.phase_log import PhaseLog
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.protocol import DestinationEffect, DestinationEvent, DestinationPhase, destination_step
from worldmove.move.questions import close, commit, reclaim
from worldmove.move.reception import receive
from worldmove.move.shadow_slot import ShadowSlot, Slots
from worldmove.move.times import Times
from worldmove.move.until import given_up, until_given_up


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationConfig:
    """How long a destination waits, in seconds. A shadow's lease comes with its offer."""

    transfer_s: float = 10.0
    """From the first to the last byte."""
    commit_retry_s: float = 0.25
    """Between two questions to the ledger."""
    digest_up_to_bytes: int = 64 << 20
    """Of states up to this size the state digest is taken too, beside the commit: a slow one lengthens the pause."""
    fetching: FetchingConfig = field(default_factory=FetchingConfig)
    precopy: PrecopyConfig = field(default_factory=PrecopyConfig)


class Destination:
    """Drives one shadow: reserved, verified, in doubt; then played, retired or discarded."""

    def __init__(self, *, host: Host, slots: Slots, offer: Offer, config: DestinationConfig | None = None) -> None:
        self.session = offer.session
        self.phase = DestinationPhase.NONE
        self.epoch = offer.epoch
        """The session's, as far as this end knows: after ``run``, the one it is played in, or was when it retired."""
        self.slot: ShadowSlot | None = None
        self.boundary = 0
        """The next block of what is installed."""
        self._host = host
        self._slots = slots
        self._offer = offer
        self._config = config or DestinationConfig()
        self._attempt = Attempt(
            host=host,
            session=offer.session,
            id=offer.attempt,
            epoch=offer.epoch,
            peer=offer.source,
            peer_incarnation=offer.source_incarnation,
            times=Times(host.clock),
        )
        self._inbox = DestinationInbox(self._attempt)
        self._log = PhaseLog(host, side="destination", session=offer.session)
        self._in: Incoming | None = None
        self._why = ("closed", "the attempt was closed before its commit")
        self._told_doubt = False
        self._effects: Mapping[DestinationEffect, Callable[[], Awaitable[DestinationEvent | None]]] = {
            DestinationEffect.RESERVE: self._reserve,
            DestinationEffect.NOTHING: self._nothing,
            DestinationEffect.GIVE_UP: self._give_up,
            DestinationEffect.COMMIT: self._commit,
            DestinationEffect.PROMOTE: self._promote,
            DestinationEffect.DISCARD: self._discard,
            DestinationEffect.HOLD: self._hold,
            DestinationEffect.RETIRE: self._retire,
            DestinationEffect.RELEASE: self._release,
            DestinationEffect.ANSWER_GONE: self._answer_gone,
        }

    @property
    def attempt_id(self) -> str:
        """The attempt that it serves."""
        return self._offer.attempt

    def deliver(self, message: AnyMoveMessage) -> None:
        """Take a message of this session. What does not concern this attempt's present is dropped."""
        self._inbox.put(message)

    def close(self) -> None:
        """The session is closed by whoever has it: let the copy go, whatever the ledger would say of it."""
        self._inbox.close()

    async def run(self) -> DestinationPhase:
        """Drive the offer to its end: LIVE, RETIRED, or NONE with the slot given back or never taken."""
        try:
            event = self._admit()
            while event is not None:
                before = self.phase
                self.phase, effect = destination_step(before, event)
                self._log.note(before, self.phase, event, attempt=self._offer.attempt, epoch=self.epoch)
                event = await self._effects[effect]()
        finally:
            self._log.write()
        return self.phase

    def discard(self) -> None:
        """Let the copy go, whatever became of it. ``break_off`` follows."""
        if self.slot is not None:
            self.slot.discard()

    async def break_off(self, reason: str, detail: str) -> None:
        """Its driver has failed and runs no more: tell both ends, and give the slot back once the path lets go of it.

        As if the process had died, it holds nothing any more: whoever is told that it owns the session says so.
        Raises what the path raises, and then the slot stays in quarantine.
        """
        self._attempt.send(self._attempt.peer, Abandon, reason=reason, detail=detail[:2048])
        if self._in is None:
            self._attempt.end("destination", "aborted", reason, detail)
        else:
            self._in.tell("aborted", reason, detail)
        if self.phase in (DestinationPhase.LIVE, DestinationPhase.QUARANTINE):
            self._attempt.send(CONTROLLER, Gone, owned_epoch=self.epoch)
        if self.slot is not None:
            await self._let_go()
            self.slot.release()

    def _admit(self) -> DestinationEvent | None:
        """Take a slot, or decline: no byte has travelled."""
        try:
            reception = receive(self._offer, self._host, self._slots)
        except MoveRefused as error:
            self._attempt.send(CONTROLLER, Declined, reason=error.reason, detail=error.detail[:2048])
            return None
        self.slot = reception.slot
        self._in = Incoming(
            attempt=self._attempt,
            offer=self._offer,
            reception=reception,
            transfer_s=self._config.transfer_s,
            digest_up_to_bytes=self._config.digest_up_to_bytes,
            fetching=self._config.fetching,
            precopy=self._config.precopy,
        )
        return DestinationEvent.OFFER

    # one effect each: do it, and say what came of it; None ends the driver

    async def _reserve(self) -> DestinationEvent:
        self._log.write()  # the world plays on
        incoming = self._incoming()
        failure = await until_given_up(incoming.run(), self._inbox.shadow(incoming), None)
        if failure is None and incoming.verified is not None:
            self.boundary = incoming.verified.block
            self._shadow().verified(self.boundary)
            return DestinationEvent.MATCHED
        if failure is None:
            raise ProtocolError("an incoming state ended without being verified")
        ended = given_up(failure, on_time_out=DestinationEvent.TIME_OUT, otherwise=DestinationEvent.ABANDON)
        self._why = (ended.reason, ended.detail)
        event: DestinationEvent = ended.event
        return event

    async def _nothing(self) -> DestinationEvent:
        return DestinationEvent.ALWAYS

    async def _give_up(self) -> DestinationEvent:
        """Nothing was asked of the ledger yet, so the attempt can still be closed from here."""
        self._shadow().discard()
        reason, detail = self._why
        self._attempt.send(self._attempt.peer, Abandon, reason=reason, detail=detail[:2048])
        asked = close(self._host, self.session, self._offer.attempt, epoch=self._offer.epoch, boundary=self.boundary)
        answer = await self._host.ledger.ask(asked)
        self._incoming().tell("aborted", reason, detail)
        if isinstance(answer, Yours) and answer.replay_to is None:
            self.epoch = answer.epoch
            return DestinationEvent.YOURS
        return await self._let_go()  # a failover has given it to another copy here, which was kept: it is not gone

    async def _commit(self) -> DestinationEvent:
        self._attempt.times.start("commit")
        asked = commit(self._host, self.session, self._offer.attempt, epoch=self._offer.epoch, boundary=self.boundary)
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self._incoming().take_state_digest())
            answer = await self._host.ledger.ask(asked)
            if destination_event(answer) is not None:
                self._attempt.times.stop("commit")
        event = self._event(answer)
        if event is not None:
            return event
        if not self._told_doubt:
            self._told_doubt = True
            self._incoming().tell("in_doubt", "no_answer", "the ledger has not answered the commit yet")
        await self._pause()
        return DestinationEvent.CLOSED if self._inbox.is_closed else DestinationEvent.TIME_OUT

    async def _promote(self) -> None:
        with self._attempt.times.phase("promote"):
            self._shadow().promote(self.epoch, self.boundary)
        self._attempt.send(self._attempt.peer, Inquire)
        self._incoming().tell("committed", "done", "")
        await self._incoming().release()

    async def _discard(self) -> DestinationEvent:
        self._shadow().discard()
        self._incoming().tell("aborted", *self._why)
        return await self._let_go()

    async def _hold(self) -> DestinationEvent:
        """Wait, then ask for it back: granted only where the owner is gone or suspected, and showed nothing."""
        await self._pause()
        asked = reclaim(self._host, self.session, epoch=self.epoch, reach=(self.boundary, self.boundary))
        event = self._event(await self._host.ledger.ask(asked))
        return DestinationEvent.YOURS if event is DestinationEvent.YOURS else DestinationEvent.TIME_OUT

    async def _retire(self) -> None:
        self._shadow().retire()
        why = "the session goes on elsewhere, and has passed this copy's boundary"
        self._incoming().tell("aborted", "superseded", why)
        await self._incoming().release()

    async def _release(self) -> None:
        self._shadow().release()

    async def _answer_gone(self) -> DestinationEvent | None:
        self._attempt.send(CONTROLLER, Gone, owned_epoch=self.epoch)
        return await self._let_go() if self.phase is DestinationPhase.QUARANTINE else None

    # waiting, naming, telling

    async def _pause(self) -> None:
        """Wait a little before the ledger is asked again, or until somebody hints at an answer."""
        self._log.write()
        await self._inbox.doubt(self._config.commit_retry_s)

    async def _let_go(self) -> DestinationEvent:
        if self._in is not None:
            await self._in.release()
        await self._shadow().still()
        return DestinationEvent.RELEASED

    def _event(self, answer: Answer | None) -> DestinationEvent | None:
        """Name an answer, and note the epoch that it tells of."""
        if isinstance(answer, Yours | Theirs):
            self.epoch = answer.epoch
        return DestinationEvent.CLOSED if self._inbox.is_closed else destination_event(answer)

    def _incoming(self) -> Incoming:
        if self._in is None:
            raise ProtocolError(f"{self.session} has nothing incoming while {self.phase.value}")
        return self._in

    def _shadow(self) -> ShadowSlot:
        if self.slot is None:
            raise ProtocolError(f"{self.session} has no slot while {self.phase.value}")
        return self.slot
