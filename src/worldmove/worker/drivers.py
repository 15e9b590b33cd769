"""The drivers of moves in one worker: a source for every copy that is played, a destination for every offer.

A destination that ends as an owner, or as a copy of last resort, hands its copy on to a source.
"""

from collections.abc import Callable

from worldmove.move.destination import Destination
from worldmove.move.host import Host
from worldmove.move.messages import Abandon, AnyMoveMessage, Cancel, Declined, MoveMessage, Offer, Prepare, Start
from worldmove.move.protocol import DestinationPhase, SourcePhase
from worldmove.move.reply import gone, reply
from worldmove.move.source import Refused, Source, TakenOver
from worldmove.worker.background import Background
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.tools import Tools

OWNED = (CopyPhase.LIVE, CopyPhase.FROZEN)
MAX_DRIVER_FAILURES = 3
"""Of one copy, in a row: a driver that fails wherever it begins would never let its worker rest.

One that fails at what it was asked for begins no row: moves that fail take no world.
"""


class Drivers:
    """Starts drivers, and hands each message to the one that it is for."""

    def __init__(
        self,
        *,
        host: Host,
        copies: CopyTable,
        tools: Tools,
        background: Background,
        containment: Containment,
        log: Callable[..., None],
    ) -> None:
        self._host = host
        self._copies = copies
        self._tools = tools
        self._background = background
        self._containment = containment
        self._log = log
        self._sources: dict[str, Source] = {}
        self._destinations: dict[str, Destination] = {}
        self._early: dict[str, list[AnyMoveMessage | Refused]] = {}
        """What came for a copy between its promotion and the start of its source."""
        self._next_offers: dict[str, Offer] = {}
        """Offers that came while the one before them was letting go."""

    def play(
        self,
        copy: SessionCopy,
        *,
        retired_at: int | None = None,
        num_failed: int = 0,
        waits_for_failover: bool = False,
    ) -> None:
        """Drive a copy that is played, or is kept as a copy of last resort, from now on. So many drivers had failed.

        ``waits_for_failover``: of what was kept of another worker's session (``move.source``).
        """
        source = Source(
            host=self._host,
            session=copy.name,
            copy=SourceOfMove(copy, self._tools, self._copies.snapshot),
            epoch=copy.epoch,
            retired_at=retired_at,
            waits_for_failover=waits_for_failover,
        )
        self._sources[copy.name] = source
        for message in self._early.pop(copy.name, []):
            source.deliver(message)
        self._background.start(
            f"source {copy.name}",
            self._drive_source(source),
            contained=lambda error: self._source_failed(source, error, num_failed),
        )

    def _source_failed(self, source: Source, error: BaseException, num_failed: int) -> None:
        """Its move is over here. Where no proof was sent the copy plays on, with another driver; else its part ends."""
        copy = self._copies.get(source.session)
        may_thaw = (
            source.phase in (SourcePhase.LIVE, SourcePhase.FROZEN) and self._sources.get(source.session) is source
        )
        if copy is None or copy.phase not in OWNED or not may_thaw or num_failed == MAX_DRIVER_FAILURES:
            self._containment.failed("source", source.session, error)
            return
        with self._containment.of("thaw", source.session):
            source.give_up("internal", self._containment.report("source", source.session, error))
            copy.thaw(source.epoch)
            self.play(copy, num_failed=0 if source.was_asked else num_failed + 1)

    def take(self, message: AnyMoveMessage) -> None:
        """Hand a message to its driver; an offer begins one."""
        if isinstance(message, Offer | Start | Cancel | Abandon):
            kind = type(message).__name__.lower()
            self._log("move", said=kind, session=message.session, attempt=message.attempt, epoch=message.epoch)
        destination = self._destinations.get(message.session)
        source = self._sources.get(message.session)
        if destination is not None:
            if isinstance(message, Offer) and message.attempt != destination.attempt_id:
                self._offered_meanwhile(message, destination)
                return
            if isinstance(message, Cancel) and self._waits(message):
                del self._next_offers[message.session]
            destination.deliver(message)
            if destination.phase is DestinationPhase.LIVE:
                self._early.setdefault(message.session, []).append(message)
        elif isinstance(message, Offer):
            self._begin(message)
        elif source is not None:
            source.deliver(message)
        elif isinstance(message, Prepare):
            self._decline(message, "no_copy", f"{self._host.worker} does not play {message.session}")

    def taken_over(self, session: str, epoch: int, block: int) -> None:
        """The ledger has granted a session to this worker's retired copy. Without one, say that it is gone."""
        source = self._sources.get(session)
        if source is not None:
            source.deliver(TakenOver(epoch=epoch, block=block))
        else:
            self._say_gone(session, epoch)

    def refused(self, session: str, epoch: int) -> None:
        """The ledger's row has ``epoch``, which is later than what this worker's copy has said."""
        destination, source = self._destinations.get(session), self._sources.get(session)
        if destination is not None and destination.phase is DestinationPhase.LIVE:
            self._early.setdefault(session, []).append(Refused(epoch=epoch))
        elif source is not None:
            source.deliver(Refused(epoch=epoch))

    def failed(self, copy: SessionCopy, why: str) -> None:
        """A copy's engine has raised, and it is freed next: give its move up, and own the session here no more."""
        source = self._sources.get(copy.name)
        if source is not None:
            source.give_up("engine_failed", why)
        self._containment.start("end", copy.name, self.end(copy.name))
        self._say_gone_if_owned(copy)

    def granted_unasked(self, session: str, epoch: int) -> None:
        """The ledger says that a session is this worker's, and nobody waits for that. Without a copy, it is gone."""
        copy = self._copies.get(session)
        if (copy is None or copy.is_freeing) and session not in self._destinations:
            self._say_gone(session, epoch)

    async def end(self, session: str) -> None:
        """Stop driving a session that is closed."""
        self._next_offers.pop(session, None)
        destination = self._destinations.get(session)
        if destination is not None:
            destination.close()
        self._sources.pop(session, None)
        await self._background.end(f"source {session}")

    async def break_off(self, session: str, copy: SessionCopy | None, why: str) -> None:
        """The session's part here is over, by a failure of ours: drive it no more, and tell whoever takes part in it.

        ``copy``: what is held of it. Its slot stays in quarantine where a path cannot be let go of.
        """
        destination, source = self._destinations.pop(session, None), self._sources.pop(session, None)
        self._early.pop(session, None)
        self._next_offers.pop(session, None)
        if destination is not None:
            destination.discard()
        if copy is not None:
            self._say_gone_if_owned(copy)
            self._copies.let_go(copy, why)
        for driver in ("destination", "source"):
            await self._background.end(f"{driver} {session}")
        if source is not None:
            source.give_up("internal", why)
        if destination is not None:
            with self._containment.of("release", session, is_over=True):
                await destination.break_off("internal", why)

    def _say_gone_if_owned(self, copy: SessionCopy) -> None:
        if copy.phase in OWNED:
            self._say_gone(copy.name, copy.epoch)

    def _say_gone(self, session: str, epoch: int) -> None:
        """The ledger names this worker as the owner in ``epoch``, and it holds no copy."""
        self._host.post(gone(self._host, session, epoch))

    def _offered_meanwhile(self, offer: Offer, destination: Destination) -> None:
        """What lets go is waited for, its path may take a moment; for anything else somebody else is to decide."""
        if destination.phase is DestinationPhase.QUARANTINE:
            self._next_offers[offer.session] = offer
            return
        phase = destination.phase.value
        self._decline(offer, "copy_held", f"the destination still holds a {phase} copy of {offer.session}")

    def _waits(self, message: Cancel) -> bool:
        offer = self._next_offers.get(message.session)
        return offer is not None and offer.attempt == message.attempt

    def _begin(self, offer: Offer) -> None:
        destination = Destination(host=self._host, slots=self._copies, offer=offer)
        self._destinations[offer.session] = destination
        self._background.start(
            f"destination {offer.session}",
            self._drive_destination(destination),
            contained=lambda error: self._destination_failed(destination, error),
        )

    def _destination_failed(self, destination: Destination, error: BaseException) -> None:
        """The session's part here ends; unless that was over, and another copy, which was kept here, has taken over."""
        session = destination.session
        copy = self._copies.get(session)
        if destination.phase is DestinationPhase.QUARANTINE and copy is not None and not copy.is_freeing:
            self._containment.report("destination", session, error)
            del self._destinations[session]
            self._next_offers.pop(session, None)
        else:
            self._containment.failed("destination", session, error)

    async def _drive_source(self, source: Source) -> None:
        await source.run()
        if self._sources.get(source.session) is source:
            del self._sources[source.session]

    async def _drive_destination(self, destination: Destination) -> None:
        session = destination.session
        phase = await destination.run()
        held = self._copies.get(session)
        if session in self._next_offers and held is not None and held.is_freeing:
            await held.ended.wait()
        offer = self._next_offers.pop(session, None)  # it may have been cancelled meanwhile
        del self._destinations[session]
        self._log("move_ended_here", session=session, side="destination", phase=phase.value, epoch=destination.epoch)
        copy = self._copies.get(session)
        if copy is None or copy.is_freeing:  # its session was closed meanwhile
            self._early.pop(session, None)
            if offer is not None:
                self._begin(offer)
            return
        if offer is not None:
            self._decline(offer, "copy_held", f"{session} is held here")
        if phase is DestinationPhase.LIVE:
            self.play(copy)
        elif phase is DestinationPhase.RETIRED:
            copy.epoch, copy.next_block = destination.epoch, destination.boundary  # it was never promoted
            self.play(copy, retired_at=destination.boundary)
        self._early.pop(session, None)

    def _decline(self, asked: MoveMessage, reason: str, detail: str) -> None:
        self._host.post(reply(self._host, asked, Declined, reason=reason, detail=detail))
