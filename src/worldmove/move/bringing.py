"""A state brought into its slot at the boundary, installed, and digested as it will be played.

    land       pull every extent into the slot, close the write window
    build      make the tree over where they land                       beside the landing
    install    make a session of it, resolve its state anew             beside it too, where that reads nothing
    verify     digest every group of that state                         beside the source's second pass

Where copies start at once (``move.arrival``), the order of the last three is the device's: no thread waits between
them. The bytes are pulled once; where some were pulled before the boundary and others are there than were frozen, once
more, to tell who is to blame: by then the attempt has failed, and nothing of it is played.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from worldmove.errors import TransportError
from worldmove.move.arrival import Arrival
from worldmove.move.attempt import Attempt, Brought, GaveUpError, Prove
from worldmove.move.copying import copying_in, is_prompt
from worldmove.move.device_path import open_window
from worldmove.move.messages import Boundary, Offer
from worldmove.move.protocol import DestinationEvent
from worldmove.move.readiness import Readiness
from worldmove.move.reception import Reception
from worldmove.move.rounds import Rounds
from worldmove.state.capture import Capture
from worldmove.state.difference import is_same
from worldmove.state.digest import BeginPass
from worldmove.state.extent import Extent
from worldmove.state.gate import number_of
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement, extents
from worldmove.state.preview import hear
from worldmove.state.proof import MoveProof
from worldmove.transport.base import PromptChannel

AGAIN_S = 1.0
"""So long a second reading may take: whoever plays waits for it."""


class Bringing:
    """One state on its way into one slot."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        offer: Offer,
        reception: Reception,
        ready: Readiness,
        rounds: Rounds | None,
        transfer_s: float,
        begin: BeginPass,
        prove: Prove,
        landed: Callable[[], None],
    ) -> None:
        """``rounds``: bring some of it before the boundary. ``landed`` is called when all of it is here."""
        self.brought = Brought()
        self._attempt = attempt
        self._slot = reception.slot
        self._channel = ready.channel
        self._preview = ready.preview
        self._rounds = rounds
        self._transfer_s = transfer_s
        self._begin = begin
        self._prove = prove
        self._landed = landed
        self._still = asyncio.Event()
        self._has_begun = False
        self._frozen: tuple[Manifest, Placement] | None = None
        """What the boundary has told, and where it lies."""
        self._number = number_of(offer.nonce)
        self._is_prompt = is_prompt(self._slot.arena, self._channel)
        self._arrival = self._opened() if self._is_prompt and rounds is None else None

    def still(self) -> None:
        """The source's slot is written no more."""
        self._still.set()

    async def begin_early(self) -> None:
        """Pull what was foretold as soon as the source's slot is still; not before."""
        arrival, preview = self._arrival, self._preview
        if arrival is None or preview is None or not preview.early:
            return
        await arrival.make_ready(preview.early_extents)
        await self._still.wait()
        with self._attempt.times.phase("begin"):
            await arrival.begin()

    async def look_ahead(self) -> None:
        """The freeze is near: let the device find its ways to what it will be told to bring."""
        if self._is_prompt and isinstance(self._channel, PromptChannel):
            with suppress(TransportError):  # bringing it will say so
                await self._channel.off_the_loop(self._channel.walk)

    async def run(self, boundary: Boundary) -> tuple[Capture, MoveProof]:
        """Return what is installed, and its digests. Raises GaveUpError and what ``Incoming.run`` does."""
        preview = self._preview if self._rounds is None else self._rounds.preview or self._preview
        manifest, placement = self._frozen = hear(preview, boundary.manifest, boundary.placement)
        if preview is None or placement != preview.places or not is_same(manifest.storages, preview.manifest.storages):
            check_placement(manifest, placement, self._slot.arena.size)
        if not self._is_prompt:
            async with asyncio.TaskGroup() as beside:
                beside.create_task(self._build(manifest, placement))
                await self._land(await self._wanted(manifest, placement, boundary))
            return await self._installed(manifest, boundary.block)
        wanted = await self._wanted(manifest, placement, boundary)
        arrival = self._arrival = self._arrival or self._opened()  # after what was held has been moved in the slot
        return await self._arrived(arrival, wanted, manifest, placement, boundary.block)

    def abandon(self) -> None:
        """Let the path start nothing more. Idempotent."""
        if self._arrival is not None:
            self._arrival.abandon()

    async def reads_as(self, proven: MoveProof, block: int) -> bool:
        """Whether all of it, of an attempt that has failed, is as was proven when it is brought once more.

        False where nothing was pulled before the boundary, or it cannot be had.
        """
        if not self._has_begun or self._frozen is None:
            return False
        manifest, placement = self._frozen
        try:
            async with asyncio.timeout(AGAIN_S):
                again = self._arrival = self._opened()
                await again.start(extents(manifest, placement))
                await again.landed(AGAIN_S)
                capture = await self._attempt.host.blocking(partial(landed, manifest, placement, self._slot.arena))
                found = await self._prove(capture, block, None)
        except (TransportError, TimeoutError):
            self.abandon()
            return False
        return not found.compare(proven, manifest)

    async def _arrived(
        self, arrival: Arrival, wanted: Sequence[Extent], manifest: Manifest, placement: Placement, block: int
    ) -> tuple[Capture, MoveProof]:
        """Bring it by copies that start at once; install it beside them, and digest it behind them."""
        await arrival.start(wanted)
        async with asyncio.TaskGroup() as beside:
            landing = beside.create_task(self._landed_by(arrival))
            with self._attempt.times.phase("build"):
                installed = await self._slot.install_landing(manifest, placement, self._begin)
            if installed is not None:
                capture, begun = installed
                self._require_same(manifest, capture)
                proving = beside.create_task(self._prove(capture, block, begun))
                await landing  # its word is for the source, and for the window: the device's order waits for neither
                with self._attempt.times.phase("verify"):
                    return capture, await proving
        return await self._installed(manifest, block)

    def _opened(self) -> Arrival:
        return Arrival(copying_in(self._slot.arena, self._channel, self._number))

    async def _landed_by(self, arrival: Arrival) -> None:
        with self._attempt.times.phase("land"):
            await arrival.landed(self._transfer_s)
        self._landed()

    async def _wanted(self, manifest: Manifest, placement: Placement, boundary: Boundary) -> Sequence[Extent]:
        """Return what is to be pulled: all of it, unless some is held already, or is on its way."""
        if self._rounds is not None:
            wanted = await self._rounds.bring(boundary, manifest, placement)
            self.brought = self._rounds.brought
            return wanted
        self.brought = Brought(pulled_bytes=manifest.num_bytes)
        self._has_begun = self._arrival is not None and self._arrival.has_begun
        if not self._has_begun or self._preview is None:
            return extents(manifest, placement)
        return self._preview.rest(manifest, placement, boundary.moved)

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
        self._landed()

    async def _build(self, manifest: Manifest, placement: Placement) -> None:
        with self._attempt.times.phase("build"):
            await self._slot.build(manifest, placement)

    async def _installed(self, manifest: Manifest, block: int) -> tuple[Capture, MoveProof]:
        """Install what has landed, and digest it."""
        with self._attempt.times.phase("install"):
            capture = await self._slot.install()
        self._require_same(manifest, capture)
        with self._attempt.times.phase("verify"):
            return capture, await self._prove(capture, block, None)

    def _require_same(self, manifest: Manifest, capture: Capture) -> None:
        if capture.manifest != manifest:
            said = f"as installed, {manifest.difference(capture.manifest)[0]}"
            # What a path brings is no part of it, unless the engine reads it: the engine is to blame, or its host.
            raise GaveUpError(DestinationEvent.MISMATCH, "installed_otherwise", said)
