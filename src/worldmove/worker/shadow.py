"""A slot that waits for a session, as the driver of its move sees it (``move.hosts.ShadowSlot``)."""

from contextlib import suppress
from functools import partial

from worldmove.errors import ProtocolError, WorldMoveError
from worldmove.state.arena import AnyArena, Placement
from worldmove.state.capture import Capture
from worldmove.state.manifest import Layout, Manifest
from worldmove.state.rehearsal import Rehearsal
from worldmove.worker.loop import Tools
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import SlotState
from worldmove.worker.states import Built, install_tree, rehearse_in, tree_in
from worldmove.worker.turns import Turn


class Shadow:
    """Orders one copy about on behalf of a move's destination."""

    def __init__(self, copy: SessionCopy, tools: Tools, layout: Layout) -> None:
        self._copy = copy
        self._layout = layout
        self._rehearsal: Rehearsal | None = None
        self._tools = tools
        self._built: Built | None = None
        tools.courtesy.shadow_reserved()

    @property
    def arena(self) -> AnyArena:
        return self._copy.slot.arena

    async def poison(self) -> None:
        await self._tools.copying(self.arena.poison)
        with suppress(WorldMoveError):  # what is wrong with it will be said of the state itself
            async with self._tools.turns.take(Turn.OPEN) as engine_thread:
                job = partial(rehearse_in, self._tools.engine, self._layout, self.arena)
                self._rehearsal = await engine_thread(job)

    async def build(self, manifest: Manifest, placement: Placement) -> None:
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            rehearsal, self._rehearsal = self._rehearsal, None
            job = partial(tree_in, self._tools.engine, manifest, placement, self.arena, rehearsal)
            self._built = await engine_thread(job)

    async def install(self) -> Capture:
        built, self._built = self._built, None
        if built is None:
            raise ProtocolError("a shadow is built before it is installed")
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            job = partial(install_tree, self._tools.engine, built)
            self._copy.engine_session, captured = await engine_thread(job)
        return captured

    def verified(self, block: int) -> None:
        self._copy.stand_at(block)

    def promote(self, epoch: int, block: int) -> None:
        self._tools.courtesy.shadow_ended()
        self._copy.slot.enter(SlotState.BOUND)
        self._copy.promote(epoch, block, self._tools.check_blocks)

    def retire(self) -> None:
        self._tools.courtesy.shadow_ended()
        self._copy.slot.enter(SlotState.BOUND)
        self._copy.retire(self._copy.attempt, 0)

    def discard(self) -> None:
        """Drop the session. The slot is in quarantine until ``release``."""
        self._tools.courtesy.shadow_ended()
        self._copy.engine_session = self._built = self._rehearsal = None
        self._copy.slot.enter(SlotState.QUARANTINED)
        if not self._copy.is_freeing:  # its session was closed meanwhile
            self._copy.enter(CopyPhase.FREEING)

    def release(self) -> None:
        self._copy.slot.enter(SlotState.FREE)
        self._copy.changed()
