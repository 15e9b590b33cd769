"""The destination's half of a boundary copy: reserve, land, install, verify what will be played.

    reserve       poison and touch the slot, connect                       before the freeze
    ...           bring the state into the slot, install and digest it     ``move.bringing``
    wait_proof    then compare all of it
    state_digest  the value that any two holders compare                   beside the commit

A session that is followed (``move.follower``) is not pulled at the boundary: it stands still there instead.

The bytes are pulled once. A boundary that comes again is answered and not pulled again, so the window that was
closed before the verifying pass stays closed.
"""

import asyncio
from contextlib import suppress
from typing import NoReturn

from worldmove.errors import NoMemory
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.bringing import Bringing
from worldmove.move.damage import say_damage
from worldmove.move.fetching import FetchingConfig
from worldmove.move.follower import Follower
from worldmove.move.meeting import Meeting
from worldmove.move.messages import (
    CONTROLLER,
    Base,
    Begin,
    Boundary,
    Component,
    Final,
    Handed,
    Landed,
    Meet,
    Offer,
    Proof,
    Ready,
    Reserved,
    Still,
)
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.proof_fields import said_by
from worldmove.move.protocol import DestinationEvent
from worldmove.move.readiness import Readiness, make_ready
from worldmove.move.reception import Reception
from worldmove.move.rounds import Rounds
from worldmove.move.strategy import Strategy
from worldmove.move.verified import Verified
from worldmove.move.word import Word
from worldmove.state.capture import Capture
from worldmove.state.digest import Pass, state_digest
from worldmove.state.preview import Preview, hear
from worldmove.state.proof import MoveProof
from worldmove.transport.base import Channel


class Incoming:
    """One session's state on its way in."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        offer: Offer,
        reception: Reception,
        transfer_s: float,
        digest_up_to_bytes: int,
        fetching: FetchingConfig,
        precopy: PrecopyConfig,
    ) -> None:
        """Of states up to ``digest_up_to_bytes`` the state digest is taken too."""
        self.verified: Verified | None = None
        self.state_digest = ""
        """Empty until it is taken, and where the state is too large for it."""
        self._attempt = attempt
        self._offer = offer
        self._reception = reception
        self._transfer_s = transfer_s
        self._digest_up_to_bytes = digest_up_to_bytes
        self._channel: Channel | None = None
        self._follower: Follower | None = None
        self._meeting: Meeting | None = None
        self._rounds: Rounds | None = None
        self._bringing: Bringing | None = None
        if offer.strategy in (Strategy.PRE_COPY.value, Strategy.STREAMING.value):
            self._rounds = Rounds(attempt=attempt, offer=offer, reception=reception, fetching=fetching, config=precopy)
        if offer.strategy == Strategy.REPLAY.value:
            self._follower = Follower(attempt=attempt, offer=offer, reception=reception, fetching=fetching)
            self._meeting = self._meeting_of(self._follower)
        self._boundary = Word[Boundary](offer.lease_s, "the session was not frozen in time")
        self._proof = Word[Proof](offer.lease_s, "the source's proof did not come in time")
        self._near: asyncio.Queue[Meet] = asyncio.Queue()
        """Where the source has said that it would freeze."""
        self._preview: Preview | None = None
        self._reserved = False
        self._landed = False

    def _meeting_of(self, follower: Follower) -> Meeting:
        return Meeting(
            attempt=self._attempt,
            follower=follower,
            at_most_s=self._transfer_s,
            begin=self._begin,
            prove=self._prove,
            stands=self._tell_landed,
        )

    # what the driver's filter lets through

    def repeat_reserved(self) -> None:
        """The offer came again: the answer may have been lost."""
        if self._reserved:
            self._attempt.send(CONTROLLER, Reserved)

    def take_boundary(self, boundary: Boundary) -> None:
        """The session is frozen. Again: the answer may have been lost."""
        if self._follower is not None:
            self._follower.meet(boundary.block)
        if self._meeting is not None:
            self._meeting.require_met(boundary.block)
        if self._rounds is not None:
            self._rounds.at_boundary()
        if not self._boundary.take(boundary) and self._landed:
            self._attempt.send(self._attempt.peer, Landed)

    def take_early(self, message: Begin | Base | Final | Component | Handed | Meet | Still) -> None:
        """Word of what comes before the boundary."""
        if isinstance(message, Still):
            if self._bringing is not None:
                self._bringing.still()
        elif self._follower is not None and isinstance(message, Begin | Base | Meet):
            self._follower.take(message)
        elif isinstance(message, Meet):
            self._near.put_nowait(message)
        elif self._rounds is not None:
            self._rounds.take(message)

    def take_proof(self, proof: Proof) -> None:
        self._proof.take(proof)

    async def run(self) -> None:
        """Return when what is installed is proven to be what was frozen, ``verified``.

        Raises GaveUpError(MISMATCH | TIME_OUT), TransportError, ManifestError, StateRefused or ArenaFull.
        """
        times = self._attempt.times
        with times.phase("reserve"):
            ready = await self._reserve()
        brought = self._pulled(ready) if self._meeting is None else self._meeting.run()
        block, capture, ours = await brought
        with times.phase("wait_proof"):
            proof = await self._proof.heard()
        await self._compare(ours, proof, capture)
        self.verified = Verified(block=block, capture=capture, num_groups=ours.num_groups)

    async def take_state_digest(self) -> None:
        """Digest the verified state under the published seed, once, if it is not too large for that."""
        verified, digester = self.verified, self._attempt.host.digester
        if verified is None or self.state_digest or verified.capture.num_bytes > self._digest_up_to_bytes:
            return
        with self._attempt.times.phase("state_digest"), suppress(NoMemory):  # it is for the report alone
            digest = await self._attempt.host.blocking(lambda: state_digest(verified.capture, digester))
            self.state_digest = digest.text

    def tell(self, outcome: str, reason: str, detail: str) -> None:
        """Tell the controller what became of the attempt here."""
        verified = self.verified
        self._attempt.end(
            "destination",
            outcome,
            reason,
            detail,
            manifest=verified.capture.manifest if verified else None,
            num_groups=verified.num_groups if verified else 0,
            state_digest=self.state_digest,
            brought=None if self._bringing is None else self._bringing.brought,
        )

    async def release(self) -> None:
        """Let go of the path. When it returns, nothing of the transport's holds the slot or the source."""
        if self._channel is not None:
            await self._channel.close()
        if self._follower is not None:
            await self._follower.release()
        if self._rounds is not None:
            await self._rounds.release()

    async def _reserve(self) -> Readiness:
        is_followed = self._meeting is not None
        ready = await make_ready(self._attempt, self._offer, self._reception, is_followed=is_followed)
        self._channel, self._preview, self._reserved = ready.channel, ready.preview, True
        self._attempt.send(CONTROLLER, Reserved)
        return ready

    async def _pulled(self, ready: Readiness) -> tuple[int, Capture, MoveProof]:
        """Bring over the state, or what is not there of it, and install it. Return the next block, and the state."""
        bringing = self._bringing = Bringing(
            attempt=self._attempt,
            offer=self._offer,
            reception=self._reception,
            ready=ready,
            rounds=self._rounds,
            transfer_s=self._transfer_s,
            begin=self._begin,
            prove=self._prove,
            landed=self._tell_landed,
        )
        try:
            async with asyncio.TaskGroup() as beside:
                following = beside.create_task(self._follow())
                boundary = await self._until_frozen(bringing)
                capture, ours = await bringing.run(boundary)
                following.cancel()
        except BaseException:
            bringing.abandon()
            raise
        return boundary.block, capture, ours

    async def _follow(self) -> None:
        """Compute here what can be computed instead of pulled."""
        if self._rounds is not None:
            await self._rounds.follow()

    async def _until_frozen(self, bringing: Bringing) -> Boundary:
        """Do what can be done before the boundary; return that."""
        async with asyncio.TaskGroup() as beside:
            early = [beside.create_task(work) for work in (self._clear(bringing), bringing.begin_early())]
            if self._rounds is not None:
                await self._rounds.run()
            boundary = await self._boundary.heard()
            for task in early:
                task.cancel()
        if self._rounds is not None:
            await self._rounds.let_go()  # only now: what was brought over at rest may have been on its way
        return boundary

    async def _clear(self, bringing: Bringing) -> None:
        """Whenever the freeze is near, let nothing else be computed here, and say so.

        Of a boundary that is over nothing is said: it would be taken for word of the next one.
        """
        while True:
            meet = await self._near.get()
            while not self._near.empty():
                meet = self._near.get_nowait()
            if self._rounds is not None:
                await self._rounds.rest(meet)
            await bringing.look_ahead()
            if self._near.empty():
                await self._reception.slot.clear(meet.block, lambda: self._attempt.send(self._attempt.peer, Ready))

    def _tell_landed(self) -> None:
        self._landed = True
        self._attempt.send(self._attempt.peer, Landed)

    def _require_same(self, capture: Capture) -> None:
        """Raise GaveUpError where what was computed has not even the shape of what was frozen."""
        boundary = self._boundary.said
        if boundary is not None:
            manifest, _ = hear(self._preview, boundary.manifest, boundary.placement)
            if capture.manifest != manifest:
                self._give_up(f"as installed, {manifest.difference(capture.manifest)[0]}")

    def _begin(self, capture: Capture) -> Pass:
        return Pass(capture, self._attempt.host.digester, self._offer.nonce, self._reception.layout.digest)

    async def _prove(self, capture: Capture, block: int, begun: Pass | None = None) -> MoveProof:
        return await self._attempt.prove(
            lambda: capture,
            boundary=block,
            nonce=self._offer.nonce,
            layout_digest=self._reception.layout.digest,
            begun=begun,
        )

    async def _compare(self, ours: MoveProof, proof: Proof, capture: Capture) -> None:
        if self._meeting is not None:
            self._meeting.require_met(proof.block)
        differences = ours.compare(said_by(proof), capture.manifest)
        if not differences:
            return
        what = f"arrived damaged from {self._attempt.peer} over {self._offer.transport}"
        if self._meeting is not None:
            self._require_same(capture)
            what = "came out otherwise where they were computed a second time"
        elif await self._reads_as_proven(proof):
            what = "were written by the engine after it had come to rest, or read wrongly once"
            said = say_damage(differences, ours.num_groups, what)
            raise GaveUpError(DestinationEvent.MISMATCH, "engine_wrote", said)
        self._give_up(say_damage(differences, ours.num_groups, what))

    async def _reads_as_proven(self, proof: Proof) -> bool:
        """Whether what was begun to be read before the boundary is as the source has proven it when it is read anew."""
        return self._bringing is not None and await self._bringing.reads_as(said_by(proof), proof.block)

    def _give_up(self, said: str) -> NoReturn:
        """What is installed is not what was frozen: a path lied, or an engine does not repeat itself."""
        raise GaveUpError(DestinationEvent.MISMATCH, "mismatch" if self._follower is None else "diverged", said)
