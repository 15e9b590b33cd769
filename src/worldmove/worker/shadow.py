"""A slot that waits for a session, as the driver of its move sees it (``move.shadow_slot.ShadowSlot``)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from worldmove.errors import MoveRefused, ProtocolError, WorldMoveError
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.known import Known
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.state.rehearsal import Rehearsal
from worldmove.transport.base import Blocking
from worldmove.worker.calm import KEPT_FREE, LIST, PICTURES, STANDS
from worldmove.worker.component import ShadowComponent
from worldmove.worker.freezing import freeze_in
from worldmove.worker.installing import (
    Built,
    install_known,
    install_landing,
    install_tree,
    practise,
    rehearse_in,
    tree_in,
)
from worldmove.worker.poisoning import poisoned
from worldmove.worker.session import SessionCopy
from worldmove.worker.slots import SlotState
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Hold, Turn


class Shadow:
    """Orders one copy about on behalf of a move's destination."""

    def __init__(self, copy: SessionCopy, tools: Tools, layout: Layout, *, is_followed: bool = False) -> None:
        """``is_followed``: nobody waits for it until it is met: others may go on as ever."""
        self._copy = copy
        self._layout = layout
        self._rehearsal: Rehearsal | None = None
        self._tools = tools
        self._built: Built | None = None
        self._known: Known | None = None
        """Of a base that is followed: what makes it cheaper to resolve where it stands in the end."""
        self._is_followed = is_followed
        self._holds_others_back = False
        self._is_quarantined = False
        self._is_given_back = False
        self._hold: Hold | None = None
        if not is_followed:
            self._hold_others_back()

    @property
    def arena(self) -> AnyArena:
        return self._copy.slot.arena

    async def poison(self, gets_on: Callable[[], None]) -> None:
        await poisoned(self.arena, self._tools.copying, gets_on)
        if self._is_followed:
            return  # a snapshot lies elsewhere than the state that was offered
        with suppress(WorldMoveError):  # what is wrong with it will be said of the state itself
            async with self._tools.turns.take(Turn.OPEN) as engine_thread:
                job = partial(rehearse_in, self._tools.engine, self._layout, self.arena)
                self._rehearsal = await engine_thread(job)

    async def clear(self, block: int, ready: Callable[[], None]) -> None:
        period_s = self._tools.spec.period_s
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            self._end_hold()
            self._hold = self._tools.turns.hold()
            self._hold.lapse_in(KEPT_FREE * period_s)
            if self._rehearsal is not None:
                with suppress(WorldMoveError):  # the boundary will say so
                    await engine_thread(partial(practise, self._tools.engine, self._rehearsal))
        with suppress(TimeoutError):
            async with asyncio.timeout(PICTURES * period_s):
                await self._tools.on_their_way.none()
        self._hold.lapse_in(KEPT_FREE * period_s)
        ready()
        while self._copy.inputs.get(block) is None:
            await self._copy.turned()
        self._hold.lapse_in(LIST * period_s)  # it is played instead: another boundary will be said

    async def build(self, manifest: Manifest, placement: Placement) -> None:
        async with self._turn() as engine_thread:
            rehearsal, self._rehearsal = self._rehearsal, None
            job = partial(tree_in, self._tools.engine, manifest, placement, self.arena, rehearsal)
            self._built = await engine_thread(job)

    async def install_landing(
        self, manifest: Manifest, placement: Placement, begin: BeginPass
    ) -> tuple[Capture, Pass] | None:
        async with self._turn() as engine_thread:
            rehearsal, self._rehearsal = self._rehearsal, None
            job = partial(install_landing, self._tools.engine, manifest, placement, self.arena, rehearsal, begin)
            arrived = await engine_thread(job)
        if isinstance(arrived, Built):
            self._built = arrived
            return None
        self._copy.engine_session, captured, begun = arrived
        return captured, begun

    async def install(self) -> Capture:
        built, self._built = self._built, None
        if built is None:
            raise ProtocolError("a shadow is built before it is installed")
        async with self._turn() as engine_thread:
            if not self._is_followed:
                job = partial(install_tree, self._tools.engine, built)
                self._copy.engine_session, captured = await engine_thread(job)
                return captured
            know = partial(install_known, self._tools.engine, built)
            self._copy.engine_session, known = await engine_thread(know)
            self._known = known
            return known.capture

    @property
    def next_block(self) -> int:
        return self._copy.next_block

    def follow(self, block: int, attempt: str) -> None:
        self._require_held()
        self._copy.follow(block, attempt)

    async def caught_up(self) -> None:
        while self._stands_before(self._copy.left_gateway):
            await self._copy.turned()

    def stop_before(self, block: int) -> None:
        self._hold_others_back()
        self._copy.stop_before(block)
        self._tools.courtesy.look_again()

    async def halt(self, begin: BeginPass) -> tuple[int, Capture, Pass | None]:
        while self._copy.stops_before is None or self._stands_before(self._copy.stops_before):
            await self._copy.turned()
        await self._copy.step.over()
        block = self._copy.stops_before
        if self._copy.next_block > block:
            raise MoveRefused(
                "overshot", f"it had stepped block {self._copy.next_block - 1} before it was told to stop"
            )
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            self._require_held()
            self._hold = self._tools.turns.hold()
            self._hold.lapse_in(STANDS * self._tools.spec.period_s)
            known, self._known = self._known, None
            session, arena = self._copy.engine_session, self.arena
            job = partial(freeze_in, self._tools.engine, session, arena, known, is_pulled=False, begin=begin)
            still = await engine_thread(job)
        return block, still.capture, still.first

    async def beside(self, num_bytes: int) -> ShadowComponent:
        made = list[ShadowComponent]()
        try:
            # Not here: memory of a device is taken, and given back, when all work there is done.
            await self._tools.copying(lambda: made.append(ShadowComponent(self._tools, self.arena, num_bytes)))
        except BaseException:
            for component in made:
                await self._tools.copying(component.free)
            raise
        return made[0]

    def verified(self, block: int) -> None:
        self._copy.stand_at(block)

    def promote(self, epoch: int, block: int) -> None:
        self._let_others_go_on()
        self._copy.slot.enter(SlotState.BOUND)
        self._copy.promote(epoch, block, self._tools.check_blocks)

    def retire(self) -> None:
        self._let_others_go_on()
        self._copy.slot.enter(SlotState.BOUND)
        self._copy.retire(self._copy.attempt, 0)

    def discard(self) -> None:
        """Drop the session, in any phase. The slot is in quarantine until ``release``, unless it was given back."""
        self._let_others_go_on()
        slot, self._built, self._rehearsal, self._known = self._copy.slot, None, None, None
        is_its_own = not self._copy.is_let_go if slot.state is SlotState.BOUND else not self._is_given_back
        if is_its_own and not self._is_quarantined:
            self._is_quarantined = True
            slot.enter(SlotState.QUARANTINED)
        self._copy.engine_session = None
        self._copy.end()  # its session may have been closed meanwhile

    async def still(self) -> None:
        await self._copy.step.over()
        await self._copy.users.gone()

    def release(self) -> None:
        if self._is_quarantined:
            self._is_quarantined, self._is_given_back = False, True
            self._copy.slot.enter(SlotState.FREE)
            self._copy.changed()

    def _stands_before(self, block: int) -> bool:
        """Whether there is something to step before a block. Raises MoveRefused where it never will be stepped."""
        self._require_held()
        if self._copy.next_block >= block:
            return False
        if self._copy.inputs.skips(self._copy.next_block):
            raise MoveRefused(
                "log_gap", f"the keys of block {self._copy.next_block} have not come, and later ones have"
            )
        return True

    def _require_held(self) -> None:
        if self._copy.is_freeing:
            failure = self._copy.failure
            raise MoveRefused("engine_failed" if failure else "closed", failure or "its session was closed")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Blocking]:
        """Take the engine: at once where a player waits, else between the blocks of those who are played here."""
        if self._is_followed:
            await self._tools.courtesy.permission(unless=lambda: self._copy.is_freeing)
        async with self._tools.turns.take(Turn.OPEN if self._is_followed else Turn.BOUNDARY) as engine_thread:
            yield engine_thread

    def _hold_others_back(self) -> None:
        if not self._holds_others_back:
            self._holds_others_back = True
            self._tools.courtesy.hold_back()

    def _let_others_go_on(self) -> None:
        self._end_hold()
        if self._holds_others_back:
            self._holds_others_back = False
            self._tools.courtesy.let_go_on()

    def _end_hold(self) -> None:
        if self._hold is not None:
            self._hold.end()
            self._hold = None
