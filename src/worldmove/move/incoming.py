"""The destination's half of a boundary copy: reserve, land, install, verify what will be played.

    reserve       poison and touch the slot, connect                       before the freeze
    land          pull every extent into the slot, close the write window
    build         make the tree over where they land                       beside the landing
    install       make a session of it, resolve its state anew
    verify        digest every group of that state                         beside the source's second pass
    wait_proof    then compare all of it
    state_digest  the value that any two holders compare                   beside the commit

A session that is followed (``move.follower``) is not pulled at the boundary: it stands still there instead.

The bytes are pulled once. A boundary that comes again is answered and not pulled again, so the window that was
closed before the verifying pass stays closed.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from worldmove.errors import ManifestError, TransportError
from worldmove.move.attempt import Attempt, Brought, GaveUpError
from worldmove.move.damage import say_damage
from worldmove.move.device_path import DeviceWriteWindow, open_window
from worldmove.move.fetching import FetchingConfig
from worldmove.move.follower import Follower
from worldmove.move.messages import (
    CONTROLLER,
    Base,
    Begin,
    Boundary,
    Final,
    Landed,
    Meet,
    Offer,
    Proof,
    Ready,
    Reserved,
)
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.proof_fields import said_by
from worldmove.move.protocol import DestinationEvent
from worldmove.move.reception import Reception
from worldmove.move.rounds import Rounds
from worldmove.move.strategy import Strategy
from worldmove.state.arena import Placement, check_placement, extents
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import Pass, prepare_key, state_digest
from worldmove.state.extent import Extent
from worldmove.state.manifest import Manifest
from worldmove.state.memory import PendingCopy
from worldmove.state.preview import Preview, hear
from worldmove.state.proof import MoveProof
from worldmove.transport.base import Channel, PromptChannel

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What is installed, and proven equal to what was frozen."""

    block: int
    capture: Capture
    num_groups: int


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
        self._layout = reception.layout
        self._slot = reception.slot
        self._transport = reception.transport
        self._transfer_s = transfer_s
        self._digest_up_to_bytes = digest_up_to_bytes
        self._channel: Channel | None = None
        self._follower: Follower | None = None
        self._rounds: Rounds | None = None
        self._begun: Pass | None = None
        self._brought = Brought()
        if offer.strategy in (Strategy.PRE_COPY.value, Strategy.STREAMING.value):
            self._rounds = Rounds(attempt=attempt, offer=offer, reception=reception, fetching=fetching, config=precopy)
        if offer.strategy == Strategy.REPLAY.value:
            self._follower = Follower(attempt=attempt, offer=offer, reception=reception, fetching=fetching)
        self._boundary: asyncio.Future[Boundary] = asyncio.get_running_loop().create_future()
        self._proof: asyncio.Future[Proof] = asyncio.get_running_loop().create_future()
        self._near: asyncio.Queue[Meet] = asyncio.Queue()
        """Where the source has said that it would freeze."""
        self._preview: Preview | None = None
        self._reserved = False
        self._landed = False
        self._stands_at: int | None = None
        """The block before which a follower stands still."""

    # what the driver's filter lets through

    def repeat_reserved(self) -> None:
        """The offer came again: the answer may have been lost."""
        if self._reserved:
            self._attempt.send(CONTROLLER, Reserved)

    def take_boundary(self, boundary: Boundary) -> None:
        """The session is frozen. Again: the answer may have been lost."""
        if self._follower is not None:
            self._follower.meet(boundary.block)
        self._require_met(boundary.block)
        if self._rounds is not None:
            self._rounds.at_boundary()
        if not self._boundary.done():
            self._boundary.set_result(boundary)
        elif self._landed:
            self._attempt.send(self._attempt.peer, Landed)

    def take_early(self, message: Begin | Base | Final | Meet) -> None:
        """Word of what comes before the boundary."""
        if self._follower is not None and not isinstance(message, Final):
            self._follower.take(message)
        elif isinstance(message, Meet):
            self._near.put_nowait(message)
        elif self._rounds is not None:
            self._rounds.take(message)

    def take_proof(self, proof: Proof) -> None:
        if not self._proof.done():
            self._proof.set_result(proof)

    async def run(self) -> None:
        """Return when what is installed is proven to be what was frozen, ``verified``.

        Raises GaveUpError(MISMATCH | TIME_OUT), TransportError, ManifestError, StateRefused or ArenaFull.
        """
        times = self._attempt.times
        with times.phase("reserve"):
            await self._reserve()
        if self._follower is not None:
            await self._follower.run()
            block, capture = await self._followed(self._follower)
        else:
            block, capture = await self._pulled()
        with times.phase("verify"):
            ours = await self._prove(capture, block)
        if self._follower is not None:  # so that its source freezes, if it has not: nobody waits for this end then
            self._attempt.send(self._attempt.peer, Ready)
        with times.phase("wait_proof"):
            proof = await self._heard(self._proof, "the source's proof did not come in time")
        self._compare(ours, proof, capture)
        self.verified = Verified(block=block, capture=capture, num_groups=ours.num_groups)

    async def take_state_digest(self) -> None:
        """Digest the verified state under the published seed, once, if it is not too large for that."""
        verified, digester = self.verified, self._attempt.host.digester
        if verified is None or self.state_digest or verified.capture.num_bytes > self._digest_up_to_bytes:
            return
        with self._attempt.times.phase("state_digest"):
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
            brought=self._brought,
        )

    async def release(self) -> None:
        """Let go of the path. When it returns, nothing of the transport's holds the slot or the source."""
        if self._channel is not None:
            await self._channel.close()
        if self._follower is not None:
            await self._follower.release()
        if self._rounds is not None:
            await self._rounds.release()

    async def _reserve(self) -> None:
        await self._slot.poison()
        arena = self._slot.arena
        with suppress(ManifestError):  # then the boundary's own is refused, or read whole
            self._preview = _checked(Preview.of(self._layout), arena.size)
        if isinstance(arena, DeviceArena):
            await self._attempt.host.blocking(lambda: prepare_key(arena.kit, self._offer.nonce, self._layout.digest))
        if self._follower is None:
            async with asyncio.timeout(self._offer.lease_s):
                self._channel = await self._transport.connect(self._offer.ticket)
        self._reserved = True
        self._attempt.send(CONTROLLER, Reserved)

    async def _heard(self, word: asyncio.Future[T], otherwise: str) -> T:
        """Wait as long as the lease allows."""
        try:
            async with asyncio.timeout(self._offer.lease_s):
                return await word
        except TimeoutError as error:
            raise GaveUpError(DestinationEvent.TIME_OUT, "time_out", otherwise) from error

    async def _pulled(self) -> tuple[int, Capture]:
        """Bring over the state, or what is not there of it, and install it. Return the next block, and the state."""
        async with asyncio.TaskGroup() as beside:
            clearing = beside.create_task(self._clear())
            if self._rounds is not None:
                await self._rounds.run()
            boundary = await self._heard(self._boundary, "the session was not frozen in time")
            clearing.cancel()
        preview = self._preview if self._rounds is None else self._rounds.preview or self._preview
        manifest, placement = hear(preview, boundary.manifest, boundary.placement)
        if preview is None or placement != preview.places:
            check_placement(manifest, placement, self._slot.arena.size)
        capture = await self._arrived(manifest, placement) if self._rounds is None else None
        if capture is None:
            async with asyncio.TaskGroup() as beside:
                beside.create_task(self._build(manifest, placement))
                await self._land(await self._wanted(manifest, placement, boundary))
            with self._attempt.times.phase("install"):
                capture = await self._slot.install()
        self._require_same(manifest, capture)
        return boundary.block, capture

    async def _arrived(self, manifest: Manifest, placement: Placement) -> Capture | None:
        """Bring all of it by copies that start at once, and install it beside them; None where the path starts none.

        The pass over what is installed is begun with it. The device's kit lets it come after the copies into what it
        reads, and the window takes no more of them: that order is the only thing it waits for.
        """
        window, channel, times = open_window(self._slot.arena), self._channel, self._attempt.times
        if not (isinstance(window, DeviceWriteWindow) and isinstance(channel, PromptChannel)):
            window.abandon()
            return None
        started = await self._started(window, channel, extents(manifest, placement))
        if started is None:
            return None
        self._brought = Brought(pulled_bytes=manifest.num_bytes)
        async with asyncio.TaskGroup() as beside:
            landing = beside.create_task(self._landed_by(window, channel, started))
            with times.phase("build"):
                installed = await self._slot.install_landing(manifest, placement, self._begin)
            await landing
        if installed is not None:
            capture, self._begun = installed
            return capture
        with times.phase("install"):
            return await self._slot.install()

    async def _started(
        self, window: DeviceWriteWindow, channel: PromptChannel, wanted: Sequence[Extent]
    ) -> PendingCopy | None:
        started = None
        try:  # not here: the kit may be at work for somebody else, and the loop serves all worlds
            started = await channel.off_the_loop(lambda: window.start(channel, wanted))
        finally:
            if started is None:
                window.abandon()
        return started

    async def _landed_by(self, window: DeviceWriteWindow, channel: PromptChannel, started: PendingCopy) -> None:
        with self._attempt.times.phase("land"):
            try:
                async with asyncio.timeout(self._transfer_s):
                    await channel.off_the_loop(started.wait)
            except BaseException:
                window.abandon()
                raise
            window.close()
        self._tell_landed()

    def _begin(self, capture: Capture) -> Pass:
        return Pass(capture, self._attempt.host.digester, self._offer.nonce, self._layout.digest)

    async def _followed(self, follower: Follower) -> tuple[int, Capture]:
        """Have what is installed stand still where the source has said: before that has frozen, where it can be."""
        try:
            async with asyncio.timeout(self._transfer_s):
                with self._attempt.times.phase("halt"):
                    self._stands_at, capture, self._begun = await follower.halt(self._begin)
        except TimeoutError as error:
            raise GaveUpError(DestinationEvent.TIME_OUT, "time_out", "it did not come to where they meet") from error
        self._tell_landed()
        return self._stands_at, capture

    async def _wanted(self, manifest: Manifest, placement: Placement, boundary: Boundary) -> Sequence[Extent]:
        """Return what is to be pulled: all of it, unless some is held already."""
        if self._rounds is None:
            self._brought = Brought(pulled_bytes=manifest.num_bytes)
            return extents(manifest, placement)
        wanted = await self._rounds.bring(boundary, manifest, placement)
        self._brought = self._rounds.brought
        return wanted

    async def _land(self, wanted: Sequence[Extent]) -> None:
        """Pull it, then close the write window: what was lent for writing can be written no more."""
        if self._channel is None:
            raise TransportError("there is no channel")
        with self._attempt.times.phase("land"):
            window = open_window(self._slot.arena)
            try:
                async with asyncio.timeout(self._transfer_s):
                    await window.fill(self._channel, wanted)
            except BaseException:
                window.abandon()
                raise
            window.close()
        self._tell_landed()

    async def _clear(self) -> None:
        """Whenever the freeze is near, let nothing else be computed here, and say so."""
        while True:
            meet = await self._near.get()
            if self._rounds is not None:
                await self._rounds.rest(meet)
            await self._slot.clear(meet.block, lambda: self._attempt.send(self._attempt.peer, Ready))

    def _tell_landed(self) -> None:
        self._landed = True
        self._attempt.send(self._attempt.peer, Landed)

    async def _build(self, manifest: Manifest, placement: tuple[int, ...]) -> None:
        with self._attempt.times.phase("build"):
            await self._slot.build(manifest, placement)

    def _require_met(self, block: int) -> None:
        """Raise GaveUpError where a follower stands still before another block than its source."""
        if self._stands_at not in (None, block):
            said = f"it stands before block {self._stands_at}, and the source before block {block}"
            raise GaveUpError(DestinationEvent.ABANDON, "overshot", said)

    def _require_same(self, manifest: Manifest, capture: Capture) -> None:
        if capture.manifest != manifest:
            self._give_up(f"as installed, {manifest.difference(capture.manifest)[0]}")

    async def _prove(self, capture: Capture, block: int) -> MoveProof:
        begun, self._begun = self._begun, None
        return await self._attempt.prove(
            lambda: capture, boundary=block, nonce=self._offer.nonce, layout_digest=self._layout.digest, begun=begun
        )

    def _compare(self, ours: MoveProof, proof: Proof, capture: Capture) -> None:
        self._require_met(proof.block)
        differences = ours.compare(said_by(proof), capture.manifest)
        if not differences:
            return
        what = f"arrived damaged from {self._attempt.peer} over {self._offer.transport}"
        if self._follower is not None:
            if self._boundary.done():
                boundary = self._boundary.result()
                self._require_same(hear(self._preview, boundary.manifest, boundary.placement)[0], capture)
            what = "came out otherwise where they were computed a second time"
        self._give_up(say_damage(differences, ours.num_groups, what))

    def _give_up(self, said: str) -> NoReturn:
        """What is installed is not what was frozen: a path lied, or an engine does not repeat itself."""
        raise GaveUpError(DestinationEvent.MISMATCH, "mismatch" if self._follower is None else "diverged", said)


def _checked(preview: Preview | None, arena_bytes: int) -> Preview | None:
    """Return a preview whose storages have places of their own. Raises ManifestError."""
    if preview is not None:
        check_placement(preview.manifest, preview.places, arena_bytes)
    return preview
