"""A copy as the driver of its move sees it at the source (``move.source_copy.SourceCopy``)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from worldmove.errors import ProtocolError, StateRefused
from worldmove.move.source_copy import Aside, Frozen, Resting, WhenReady
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass
from worldmove.state.layout import Layout
from worldmove.state.recapture import Known
from worldmove.transport.base import Blocking
from worldmove.worker.boundaries import RESTING, boundary_after, next_boundary, num_ahead
from worldmove.worker.calm import PATIENCE, PATIENCE_S, Asking, Calm
from worldmove.worker.freezing import (
    Still,
    freeze_in,
    layout_in,
    quiesced_in,
    resolved_anew,
    rolled_in,
)
from worldmove.worker.known_ahead import KnownAhead
from worldmove.worker.messages import Replayed
from worldmove.worker.meter import HIGH
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.states import CopyAside, component_aside_in, copy_aside_in, followed_paths
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn


class SourceOfMove:
    """Orders one copy about on behalf of a move's source.

    A copy that is being freed takes no order any more: whoever frees it ends this side's driver next.
    """

    def __init__(
        self,
        copy: SessionCopy,
        tools: Tools,
        snapshot: Callable[[SessionCopy, CopyAside], Awaitable[Aside]],
    ) -> None:
        """``snapshot``: how a copy's state, or a part of it, is copied aside here."""
        self._copy = copy
        self._tools = tools
        self._snapshot = snapshot
        self._calm = Calm(copy, tools)
        self._to_ask: WhenReady | None = None
        """Who has not said yet that the other end is quiet, and is to be asked with the engine taken."""
        self._known = KnownAhead(copy, tools)
        self._in_hand: Blocking | None = None
        """The engine, while who is to be asked with it taken is waited for."""

    @property
    def arena(self) -> AnyArena:
        return self._copy.slot.arena

    @property
    def block_s(self) -> float:
        return self._tools.meter.block_s(HIGH)

    @property
    def reach(self) -> tuple[int, int]:
        return self._copy.outbox.first_kept(self._copy.next_block), self._copy.next_block

    async def layout(self) -> Layout:
        """Describe the state while it goes on being played. Raises StateRefused."""
        async with self._used(Turn.OPEN) as engine_thread:
            job = partial(layout_in, self._tools.engine, self._copy.engine_session, self._copy.slot.arena)
            layout, known = await engine_thread(job)
        self._known.offer(layout, known)
        return layout

    async def snapshot(self) -> Aside:
        return await self._snapshot(self._copy, copy_aside_in)

    def finals(self) -> tuple[str, ...]:
        return self._copy.early.take_finals()

    def hush(self) -> None:
        self._copy.early.hush()

    def hush_handed(self) -> None:
        self._copy.early.hush_handed()

    @property
    def followed(self) -> tuple[str, ...]:
        return followed_paths(self._tools.engine)

    def handed(self) -> tuple[tuple[int, bytes], ...]:
        return self._copy.early.take_handed()

    async def component(self) -> Aside:
        return await self._snapshot(self._copy, component_aside_in)

    async def meet(self, tell: Callable[[int], None]) -> None:
        copy, period_s = self._copy, self._tools.engine.spec.period_s
        await self._until_its_own()
        await next_boundary(copy, period_s)
        self._stop_before(copy.next_block + num_ahead(copy, period_s), tell)
        while copy.phase is CopyPhase.LIVE and copy.next_block < (copy.stops_before or 0):
            try:
                async with asyncio.timeout(RESTING * period_s):
                    await copy.step.ended()
            except TimeoutError:
                if not copy.step.is_there:
                    self._stop_before(copy.next_block, tell)  # it has come to rest: it is met where it stands

    async def settle(self, ready: WhenReady | None = None, *, brings: bool = False) -> None:
        """Come to stand before a block; what is held back for that goes on where it fails."""
        self._calm.begin()
        try:
            await self._until_its_own()
            if self._copy.stops_before is not None:  # it stands already, and its pictures are still leaving
                async with self._resolving(is_pulled=False):
                    self._to_ask = await self._come_to_rest(ready, brings=brings)
            else:
                if ready is not None and not brings:  # what is brought before it is resolved for that
                    ready = partial(self._resolved_meanwhile, ready)
                self._to_ask = await self._come_to_rest(ready, brings=brings)
        except BaseException:
            self._calm.end()
            raise

    async def rest(self) -> Resting:
        """Bring into the arena what has left it, while it stands still."""
        async with self._at_hand() as engine_thread:
            return await engine_thread(self._bring_home)

    def _bring_home(self) -> Resting:
        ahead = self._known.make_ready()
        rolled = rolled_in(self._tools.engine, self._copy.engine_session)
        manifest = ahead.known.capture.manifest
        return Resting(block=ahead.block, manifest=manifest, placement=ahead.placement, rolled=rolled)

    async def freeze(
        self, *, is_pulled: bool = True, begin: BeginPass | None = None, still: Callable[[], None] | None = None
    ) -> Frozen:
        """Stop where it has settled, or settle first; quiesce the engine, resolve and gather the state."""
        if self._copy.stops_before is None:
            await self.settle()
        try:
            return await self._freeze(begin, still, is_pulled=is_pulled)
        except BaseException:
            self._calm.end()
            raise

    async def _freeze(
        self, begin: BeginPass | None, when_still: Callable[[], None] | None, *, is_pulled: bool
    ) -> Frozen:
        self._require_live()
        async with self._used(Turn.BOUNDARY) as engine_thread:
            self._in_hand = engine_thread
            try:
                await self._calm.keep(self._to_ask)
            finally:
                self._in_hand = None
            self._require_live()
            self._copy.enter(CopyPhase.FROZEN)
            asked_at = asyncio.get_running_loop().time()
            known, ahead = self._known.taken()
            session, arena = self._copy.engine_session, self._copy.slot.arena
            job = partial(
                freeze_in,
                self._tools.engine,
                session,
                arena,
                known,
                is_pulled=is_pulled,
                begin=begin,
                says_rolled=when_still is None,  # else no row is told
                ahead=ahead,
            )
            if when_still is None or not self._known.comes_early(ahead):
                still = await engine_thread(job)
            else:
                still = await self._frozen_saying_so(engine_thread, job, when_still)
        return Frozen(
            block=self._copy.next_block,
            capture=still.capture,
            placement=still.placement,
            rolled=still.rolled,
            moved=still.moved,
            first=still.first,
            offered=self._known.offered,
            resolve=None if ahead is None else partial(self._resolved_anew, ahead.known),
            stopped_at=asked_at,
        )

    async def _frozen_saying_so(
        self, engine_thread: Blocking, freeze: Callable[[], Still], when_still: Callable[[], None]
    ) -> Still:
        """Freeze it; before that is over, say when nothing writes its memory any more."""

        async def quiesce() -> None:
            if await engine_thread(partial(quiesced_in, self._tools.engine, self._copy.engine_session)):
                when_still()

        # The thread has both to do before it has done the first: what is said meanwhile costs the freeze nothing.
        first = asyncio.create_task(quiesce())
        await asyncio.sleep(0)
        try:
            return await engine_thread(freeze)
        finally:
            await first

    def thaw(self, epoch: int) -> None:
        self._calm.end()
        if not self._copy.is_freeing:
            self._copy.thaw(epoch)

    def supersede(self) -> None:
        self._calm.end()
        if not self._copy.is_freeing:
            self._copy.enter(CopyPhase.SUPERSEDED)

    def retire(self, attempt: str) -> None:
        self._calm.end()
        if not self._copy.is_freeing:
            self._copy.retire(attempt, self._tools.check_blocks if attempt else 0)

    def replay(self, epoch: int, block: int) -> None:
        self._calm.end()
        if not self._copy.is_freeing:
            self._tell_computed(epoch, block)
            self._copy.replay(epoch, block, self._tools.check_blocks)

    def _tell_computed(self, epoch: int, before: int) -> None:
        """Tell how it has made the blocks that it need not compute anew: what of them was shown otherwise is found
        before a block of its own is sent.
        """
        for done in self._copy.outbox.kept(before):
            frames = self._copy.outbox.replayed[done.block] = done.frame_sha256
            self._tools.send(Replayed(session=self._copy.name, epoch=epoch, block=done.block, frame_sha256=frames))

    async def acknowledged(self, block: int) -> None:
        self._copy.outbox.send_again(self._copy.epoch)
        await self._copy.outbox.acknowledged(block)

    async def passed(self, block: int) -> None:
        await self._copy.passed(block)

    def free(self) -> None:
        self._calm.end()
        self._copy.end()

    async def _come_to_rest(self, ready: WhenReady | None, *, brings: bool) -> WhenReady | None:
        """Play no further than a boundary, at a quiet moment: nobody waits for the session, its next list is not here.

        Where the list comes first, it is played, and the next boundary tried. The last is taken as it comes: who was
        not asked then is returned, to be waited for with the engine taken. The only one at which it is met is taken
        when its follower stands there too, or its list is here; and so is the last one where what differs comes over
        before it: asked with the engine taken, the other end would begin with that anew.
        """
        copy, period_s = self._copy, self._tools.engine.spec.period_s
        now = asyncio.get_running_loop().time
        try_until, over_at = now() + min(PATIENCE * period_s, PATIENCE_S), now() + PATIENCE_S
        is_met = copy.stops_before is not None
        waits, asking = is_met or brings, Asking(ready)
        if not is_met:
            await next_boundary(copy, period_s)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(over_at):
                while True:
                    self._require_live()
                    copy.stop_before(copy.next_block)
                    is_last = is_met or now() >= try_until
                    asking.is_asked = False
                    if await self._calm.come(asking.ask if waits or not is_last else None) or is_last:
                        return ready if is_last and not is_met and not asking.is_asked else None
                    copy.play_on()
                    await boundary_after(copy, period_s)
        return None if is_met or (brings and asking.is_asked) else ready

    async def _resolved_meanwhile(self, ready: WhenReady) -> None:
        """Wait for the other end, and make ready meanwhile, as it stands: the freeze compares it with that."""
        async with self._resolving(is_pulled=True) as resolving:
            await ready()
            await resolving

    @asynccontextmanager
    async def _resolving(self, *, is_pulled: bool) -> AsyncIterator[asyncio.Task[None]]:
        """Make it ready as it stands, beside what is waited for: what has not come of it by then is let be."""
        resolving = asyncio.create_task(self._resolve(is_pulled=is_pulled))
        try:
            yield resolving
        finally:
            resolving.cancel()
            await asyncio.gather(resolving, return_exceptions=True)

    async def _resolve(self, *, is_pulled: bool) -> None:
        with suppress(StateRefused):  # it is being freed: the freeze will say so
            async with self._at_hand() as engine_thread:
                await engine_thread(partial(self._known.make_ready_if_offered, is_pulled=is_pulled))

    async def _resolved_anew(self, known: Known) -> Capture:
        """Resolve what is frozen, and was told as it was known before. Raises StateRefused."""
        async with self._used(Turn.BOUNDARY) as engine_thread:
            return await engine_thread(partial(resolved_anew, self._tools.engine, self._copy.engine_session, known))

    async def _until_its_own(self) -> None:
        """While a copy replays, its state is of a block that was shown already."""
        while self._copy.replays:
            await self._copy.step.ended()

    def _stop_before(self, block: int, tell: Callable[[int], None]) -> None:
        self._copy.stop_before(block)
        tell(block)

    @asynccontextmanager
    async def _used(self, turn: Turn) -> AsyncIterator[Blocking]:
        """Take a turn at the copy, which keeps its slot meanwhile. Raises StateRefused if it is being freed by then."""
        with self._copy.users.one_more():
            async with self._tools.turns.take(turn) as engine_thread:
                self._require_kept()
                yield engine_thread

    @asynccontextmanager
    async def _at_hand(self) -> AsyncIterator[Blocking]:
        """Use the turn that is taken already, or take one that nobody's player waits for."""
        if self._in_hand is not None:
            yield self._in_hand
            return
        async with self._used(Turn.OPEN) as engine_thread:
            yield engine_thread

    def _require_live(self) -> None:
        """Raise StateRefused for a copy that is being freed, ProtocolError for one that is not played."""
        self._require_kept()
        if self._copy.phase is not CopyPhase.LIVE:
            raise ProtocolError(f"{self._copy.name} is {self._copy.phase.value}, and only a live copy is frozen")

    def _require_kept(self) -> None:
        """Raise StateRefused for a copy that is being freed."""
        if self._copy.is_freeing:
            raise StateRefused("", "its session has ended here: its engine failed, or it was closed")
