"""The destination's half of a pre-copy: hold as much as it can of what will be frozen, and find it at the boundary.

    rounds      pull what changes while the session is played on, and digest the rows of what has come
    ready       say so, until the session is frozen
    rest        while it stands still before that, bring over what differs: what is found then costs no pause
    follow      beside all of it: a component is computed here instead of being pulled (``move.following``)
    reconcile   compare the frozen rows with those that are held: move what has moved, and say what is to be pulled

What is pulled before the boundary may be torn, late or of another state: it is known by its content and by nothing
else.
"""

import asyncio
from collections.abc import Sequence

from worldmove.errors import ManifestError, StateRefused
from worldmove.move.approach import Approach
from worldmove.move.attempt import Attempt, Brought, GaveUpError
from worldmove.move.fetching import Fetching, FetchingConfig
from worldmove.move.finals import Finals
from worldmove.move.following import Following
from worldmove.move.held_state import HeldState
from worldmove.move.messages import CONTROLLER, Base, Begin, Boundary, Component, Final, Handed, Meet, Offer, Ready
from worldmove.move.patience import Patience
from worldmove.move.precopy import PrecopyConfig
from worldmove.move.protocol import DestinationEvent
from worldmove.move.reception import Reception
from worldmove.move.strategy import Strategy
from worldmove.state.arena_rows import move_in
from worldmove.state.extent import Extent
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement, extents
from worldmove.state.preview import Preview
from worldmove.units import bytes_text

READY_S = 0.5
"""Silence after which it says again that it is ready."""


class Rounds:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        offer: Offer,
        reception: Reception,
        fetching: FetchingConfig,
        config: PrecopyConfig,
    ) -> None:
        self.brought = Brought()
        """How the state has come, once it has."""
        self.preview: Preview | None = None
        """What the base has told: the boundary says what differs from it."""
        self._attempt = attempt
        self._offer = offer
        self._layout = reception.layout
        self._arena = reception.slot.arena
        self._transport = reception.transport
        self._config = config
        self._fetching = fetching
        self._patience = Patience(patience_s=offer.patience_s, lease_s=offer.lease_s)
        self._ends_at = 0.0
        self._base: asyncio.Future[Base] = asyncio.get_running_loop().create_future()
        self._frozen = asyncio.Event()
        self._turn = asyncio.Event()
        """Set when there is something to look at while it is ready."""
        self._fetch: Fetching | None = None
        self._finals: Finals | None = None
        """None until rounds are over: by then a block's are told anew, and before that they are of no use."""
        self._state: HeldState | None = None
        self._rounds: Approach | None = None
        self._plain = ""
        self._is_followed = False
        """Whether the source has said that some of it could be computed here."""
        self._following: Following | None = None
        if offer.strategy == Strategy.STREAMING.value:
            self._following = Following(attempt=attempt, offer=offer, reception=reception, fetching=fetching)

    # what the driver's filter lets through

    def take(self, message: Begin | Base | Final | Component | Handed) -> None:
        match message:
            case Begin():
                self._patience.renew()
            case Base():
                if not self._base.done():
                    self._base.set_result(message)
            case Final(paths=paths) if self._finals is not None:
                self._finals.add(paths)
                self._turn.set()
            case Component() | Handed() if self._following is not None:
                self._following.take(message)

    def at_boundary(self) -> None:
        """The session is frozen."""
        self._frozen.set()
        self._turn.set()

    async def run(self) -> None:
        """Return when rounds gain nothing more, and the session is frozen.

        Raises GaveUpError, TransportError or ManifestError.
        """
        self._ends_at = self._attempt.host.clock() + self._offer.patience_s
        times = self._attempt.times
        try:
            async with self._patience.limit():
                with times.phase("await_base"):
                    base = await self._base
                with times.phase("rounds"):
                    await self._approach(base)
                await self._draw_level(base)
                await self._say_ready()
        except TimeoutError as error:
            reason, detail = self._patience.why(self._how_far())
            raise GaveUpError(DestinationEvent.TIME_OUT, reason, detail) from error

    async def follow(self) -> None:
        """Compute a component here, where there is one to be followed, until somebody ends this."""
        if self._following is not None:
            await self._following.run()

    async def rest(self, meet: Meet) -> None:
        """The session stands still, as is said there: hold all of that. What comes of it is looked at anew."""
        if self._finals is not None:
            self._finals.clear()  # they come with everything else; what is said from now on is of a later block
        if self._state is not None:
            await self._state.take_rest(meet)

    async def bring(self, boundary: Boundary, manifest: Manifest, placement: Placement) -> Sequence[Extent]:
        """Move what has moved, and return what is to be pulled. Raises ManifestError, GaveUpError."""
        state = self._state
        plain = self._plain or boundary.plain or ("" if state is None else state.unsaid(boundary))
        if state is None or boundary.row_bytes is None or plain:
            self._require_affordable(manifest.num_bytes, plain)
            self.brought = Brought(pulled_bytes=manifest.num_bytes, plain=plain)
            return extents(manifest, placement)
        with self._attempt.times.phase("reconcile"):
            found = await state.difference(boundary, manifest, placement)
        if self._following is not None:
            self._following.halt()
        is_not_followed = self._is_followed and state.followed_bytes <= 0
        why = "what was to be computed there was not" if is_not_followed else "more has changed than came over in time"
        self._require_affordable(found.pulled_bytes, why)
        with self._attempt.times.phase("moves"):
            if len(found.moves):
                await self._attempt.host.blocking(lambda: move_in(self._arena, found.moves))
        self.brought = Brought(
            in_place_bytes=found.in_place_bytes,
            moved_bytes=found.moved_bytes,
            pulled_bytes=found.pulled_bytes,
            followed_bytes=max(0, state.followed_bytes),
        )
        return found.pulls

    async def release(self) -> None:
        """Let go of the path, where it is still held, and of what was computed beside the slot."""
        if self._following is not None:
            await self._following.free()
        await self.let_go()

    async def let_go(self) -> None:
        """Let go of the path that was pulled over before the boundary, once nobody pulls over it any more."""
        if self._fetch is not None:
            await self._fetch.release()

    def _require_affordable(self, num_bytes: int, why: str) -> None:
        """Raise GaveUpError where unforeseen more is to be pulled in the pause than that bears: let it be played on."""
        most = self._offer.pause_bytes
        if most is not None and num_bytes > most:
            said = f"{why}: {bytes_text(num_bytes)} would be left, and {bytes_text(most)} fit into the pause"
            raise GaveUpError(DestinationEvent.ABANDON, "does_not_converge", said)

    async def _approach(self, base: Base) -> None:
        """Pull round after round, for as long as it pays."""
        offered = Preview.of(self._layout)
        manifest = Manifest.from_bytes(base.manifest, None if offered is None else offered.manifest)
        check_placement(manifest, base.placement, self._arena.size)
        if base.row_bytes is None:
            raise ManifestError("it does not say how finely it is to be looked at")
        self.preview = Preview(manifest=manifest.prepared(), places=base.placement)
        self._is_followed = self._following is not None and bool(base.followed)
        self._fetch = Fetching(
            attempt=self._attempt,
            transport=self._transport,
            ticket=base.ticket,
            arena=self._arena,
            manifest=manifest,
            placement=base.placement,
            config=self._fetching,
        )
        try:
            state = self._state = HeldState(
                attempt=self._attempt,
                arena=self._arena,
                fetching=self._fetch,
                manifest=manifest,
                placement=base.placement,
                row_bytes=base.row_bytes,
                followed=base.followed,
                following=self._following,
            )
        except StateRefused as error:
            self._plain = str(error)  # then all of it comes at the boundary
            return
        self._rounds = Approach(
            state=state,
            clock=self._attempt.host.clock,
            ends_at=self._ends_at,
            affordable_bytes=self._offer.affordable_bytes,
            config=self._config,
        )
        await self._rounds.run()
        self._finals = Finals(manifest.paths())

    async def _draw_level(self, base: Base) -> None:
        """Wait for what is to be computed here, if there is something, as long as there is time.

        Where nothing comes of it, it is brought over like the rest: in the pause it may be more than that bears.
        """
        if self._following is None or not base.followed:
            return
        left_s = self._ends_at - self._attempt.host.clock() - self._config.reserve_s
        is_level = await self._following.drawn_level(left_s)
        if not is_level and self._rounds is not None and self._state is not None:
            self._following.halt()
            self._rounds.include(self._state.pull_followed())
            with self._attempt.times.phase("rounds"):
                await self._rounds.run()

    async def _say_ready(self) -> None:
        """Say so again and again, and bring over what is final meanwhile, one leaf after the other."""
        clock = self._attempt.host.clock
        said_at = float("-inf")
        while not self._frozen.is_set():
            if clock() - said_at >= READY_S:
                said_at = clock()
                self._attempt.send(CONTROLLER, Ready)
            self._turn.clear()
            path = self._finals.take() if self._finals is not None else None
            if path is not None and self._state is not None:
                await self._state.bring_final(path, self._frozen)
                continue
            try:
                async with asyncio.timeout(READY_S):
                    await self._turn.wait()
            except TimeoutError:
                continue

    def _how_far(self) -> str:
        """Say where it stood when its time was over."""
        if self._fetch is None:
            return "its source did not say what may be pulled"
        is_looked_at = self._state is not None and self._state.is_looked_at
        how_far = "it was not frozen" if is_looked_at else "its first round did not end"
        return how_far + self._fetch.how_it_broke()
