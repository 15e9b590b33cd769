"""A copy as the driver of its move sees it at the source (``move.source_copy.SourceCopy``)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from worldmove.move.source_copy import Aside, Frozen, Resting, WhenReady
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass
from worldmove.state.layout import Layout
from worldmove.state.recapture import Known
from worldmove.transport.base import Blocking
from worldmove.worker.calm import Calm
from worldmove.worker.engine_use import EngineUse
from worldmove.worker.freezing import (
    Still,
    freeze_in,
    layout_in,
    quiesced_in,
    resolved_anew,
)
from worldmove.worker.known_ahead import KnownAhead
from worldmove.worker.messages import Replayed
from worldmove.worker.meter import HIGH
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.settling import Settling
from worldmove.worker.states import CopyAside, component_aside_in, copy_aside_in
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
        self._engine = EngineUse(copy, tools)
        self._settling = Settling(copy, tools, self._engine, self._calm, self._known)

    @property
    def arena(self) -> AnyArena:
        return self._copy.slot.arena

    @property
    def block_s(self) -> float:
        return self._tools.meter.block_s(HIGH)

    @property
    def reach(self) -> tuple[int, int]:
        return self._copy.outbox.first_kept(self._copy.next_block), self._copy.next_block

    def stay(self, *, stays: bool) -> None:
        self._copy.stays = stays

    async def layout(self) -> Layout:
        """Describe the state while it goes on being played. Raises StateRefused."""
        async with self._engine.turn(Turn.OPEN) as engine_thread:
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
        return self._tools.followed

    def handed(self) -> tuple[tuple[int, bytes], ...]:
        return self._copy.early.take_handed()

    async def component(self) -> Aside:
        return await self._snapshot(self._copy, component_aside_in)

    async def meet(self, tell: Callable[[int], None]) -> None:
        await self._settling.meet(tell)

    async def settle(self, ready: WhenReady | None = None, *, brings: bool = False) -> None:
        self._to_ask = await self._settling.settle(ready, brings=brings)

    async def rest(self) -> Resting:
        return await self._settling.rest()

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
        self._engine.require_live()
        async with self._engine.turn(Turn.BOUNDARY) as engine_thread:
            with self._engine.in_hand(engine_thread):
                await self._calm.keep(self._to_ask)
            self._engine.require_live()
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
            self._copy.replay(epoch, block, self._num_digests(block))

    def _num_digests(self, block: int) -> int:
        """Return how many blocks from ``block`` on are to carry a state digest, for whoever may check them.

        That is a source that was in doubt: it stands before any of the blocks of which the lists are out.
        """
        checks = self._tools.check_blocks
        return checks and checks + self._copy.inputs.num_from(block)

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

    async def _resolved_anew(self, known: Known) -> Capture:
        """Resolve what is frozen, and was told as it was known before. Raises StateRefused."""
        async with self._engine.turn(Turn.BOUNDARY) as engine_thread:
            return await engine_thread(partial(resolved_anew, self._tools.engine, self._copy.engine_session, known))
