"""The destination's half of a replay, up to the boundary: fetch a snapshot, install it, and keep up with the play.

    fetch       the base's chunks, verified by its proof              the source's snapshot is free then
    install     make a session of it, and verify that
    catch_up    step the lists since, as spare work
    meet        say so, until the source says where; then keep up with an owner's urgency

Nothing of it has a part in who owns the session: it may end anywhere, and the source plays on.
"""

import asyncio

from worldmove.errors import MoveRefused
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.damage import say_damage
from worldmove.move.fetching import Fetching, FetchingConfig
from worldmove.move.messages import CONTROLLER, Base, Begin, Fetched, Meet, Offer, Ready
from worldmove.move.patience import Patience
from worldmove.move.proof_fields import said_by
from worldmove.move.protocol import DestinationEvent
from worldmove.move.reception import Reception
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.manifest import Manifest
from worldmove.state.placement import check_placement
from worldmove.state.proof import MoveProof
from worldmove.units import bytes_text

READY_S = 0.5
"""Silence after which it says again that it is ready."""


class Follower:
    """One attempt's."""

    def __init__(self, *, attempt: Attempt, offer: Offer, reception: Reception, fetching: FetchingConfig) -> None:
        self._attempt = attempt
        self._offer = offer
        self._layout = reception.layout
        self._slot = reception.slot
        self._transport = reception.transport
        self._fetching = fetching
        self._patience = Patience(patience_s=offer.patience_s, lease_s=offer.lease_s)
        self._base: asyncio.Future[Base] = asyncio.get_running_loop().create_future()
        self._told = asyncio.Event()
        """Set when the source has said where it freezes."""
        self._pull: Fetching | None = None
        self._is_fetched = False
        self._follows = False

    # what the driver's filter lets through

    def take(self, message: Begin | Base | Meet) -> None:
        match message:
            case Begin():
                self._patience.renew()
            case Base():
                self._take_base(message)
            case Meet(block=block):
                self.meet(block)

    def meet(self, block: int) -> None:
        """The source freezes before this block, or has frozen there."""
        if self._follows:
            self._slot.stop_before(block)
        self._told.set()

    async def run(self) -> None:
        """Return when what is installed has been level with the play, and the source has said where they meet.

        Raises GaveUpError, TransportError, ManifestError, StateRefused or ArenaFull.
        """
        try:
            async with self._patience.limit():
                await self._draw_level()
                await self._say_ready()
        except TimeoutError as error:
            reason, detail = self._patience.why(self._how_far())
            raise GaveUpError(DestinationEvent.TIME_OUT, reason, detail) from error
        except MoveRefused as error:
            raise GaveUpError(DestinationEvent.ABANDON, error.reason, error.detail) from error

    async def halt(self, begin: BeginPass) -> tuple[int, Capture, Pass | None]:
        """Stand still where both meet; return the next block, the state, and the pass over it that has begun.

        Raises GaveUpError, StateRefused.
        """
        try:
            return await self._slot.halt(begin)
        except MoveRefused as error:
            raise GaveUpError(DestinationEvent.ABANDON, error.reason, error.detail) from error

    async def release(self) -> None:
        """Let go of the path, where it is still held."""
        if self._pull is not None:
            await self._pull.release()

    def _take_base(self, base: Base) -> None:
        if not self._base.done():
            self._base.set_result(base)
        elif self._is_fetched:
            self._attempt.send(self._attempt.peer, Fetched)

    async def _draw_level(self) -> None:
        times = self._attempt.times
        with times.phase("await_base"):
            base = await self._base
        manifest = Manifest.from_bytes(base.manifest)
        check_placement(manifest, base.placement, self._slot.arena.size)
        theirs = said_by(base)
        with times.phase("fetch"):
            await self._fetch(base, manifest, theirs)
        with times.phase("install_base"):
            await self._slot.build(manifest, base.placement)
            capture = await self._slot.install()
        with times.phase("verify_base"):
            await self._verify(capture, manifest, theirs)
        self._slot.follow(base.block, self._attempt.id)
        self._follows = True
        with times.phase("catch_up"):
            await self._slot.caught_up()

    async def _fetch(self, base: Base, manifest: Manifest, theirs: MoveProof) -> None:
        self._pull = Fetching(
            attempt=self._attempt,
            transport=self._transport,
            ticket=base.ticket,
            arena=self._slot.arena,
            manifest=manifest,
            placement=base.placement,
            config=self._fetching,
        )
        await self._pull.run(theirs, self._offer.nonce, self._layout.digest)
        self._is_fetched = True
        self._attempt.send(self._attempt.peer, Fetched)

    async def _verify(self, capture: Capture, manifest: Manifest, theirs: MoveProof) -> None:
        """Raise GaveUpError unless what is installed is what was copied aside. That it has arrived so is shown already:
        no path is to blame.
        """
        if capture.manifest != manifest:
            differences = manifest.difference(capture.manifest)
            raise GaveUpError(DestinationEvent.MISMATCH, "installed_otherwise", f"as installed, {differences[0]}")
        ours = await self._attempt.prove(
            lambda: capture, boundary=theirs.boundary, nonce=self._offer.nonce, layout_digest=self._layout.digest
        )
        if found := ours.compare(theirs, manifest):
            said = say_damage(found, ours.num_groups, "differed as installed")
            raise GaveUpError(DestinationEvent.MISMATCH, "installed_otherwise", said)

    async def _say_ready(self) -> None:
        """Say that it is level, and see that it stays so, until the source says where they meet."""
        while not self._told.is_set():
            await self._slot.caught_up()
            self._attempt.send(CONTROLLER, Ready)
            try:
                async with asyncio.timeout(READY_S):
                    await self._told.wait()
            except TimeoutError:
                continue

    def _how_far(self) -> str:
        """Say where it stood when its time was over."""
        if self._follows:
            return f"it had stepped up to block {self._slot.next_block} and had not caught up"
        if self._pull is not None and not self._is_fetched:
            come = f"{bytes_text(self._pull.num_fetched)} of the snapshot had come, and not all of it"
            return come + self._pull.how_it_broke()
        return "the snapshot did not come" if self._pull is None else "the snapshot was not installed"
