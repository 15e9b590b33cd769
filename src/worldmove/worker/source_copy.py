"""A copy as the driver of its move sees it at the source (``move.hosts.SourceCopy``)."""

import asyncio
from functools import partial

from worldmove.errors import ProtocolError
from worldmove.move.hosts import Frozen
from worldmove.worker.loop import Tools
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.states import freeze_in
from worldmove.worker.turns import Turn

FRESH = 0.1
"""A boundary is fresh for this share of a block's period; a freeze then has nearly a whole period ahead."""
RESTING = 1.25
"""Periods without a step after which a session counts as resting, and is frozen where it stands."""


class SourceOfMove:
    """Orders one copy about on behalf of a move's source."""

    def __init__(self, copy: SessionCopy, tools: Tools) -> None:
        self._copy = copy
        self._tools = tools

    async def freeze(self) -> Frozen:
        """Stop at the next block boundary, quiesce the engine, resolve and gather the state."""
        await self._next_boundary()
        if self._copy.phase is not CopyPhase.LIVE:
            raise ProtocolError(f"{self._copy.name} is {self._copy.phase.value}, and only a live copy is frozen")
        self._copy.enter(CopyPhase.FROZEN)
        await self._copy.still()
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            job = partial(freeze_in, self._tools.engine, self._copy.engine_session, self._copy.slot.arena)
            captured, placement = await engine_thread(job)
        return Frozen(block=self._copy.next_block, capture=captured, placement=placement)

    def thaw(self, epoch: int) -> None:
        self._copy.thaw(epoch)

    def supersede(self) -> None:
        self._copy.enter(CopyPhase.SUPERSEDED)

    def retire(self, attempt: str) -> None:
        self._copy.retire(attempt, self._tools.check_blocks)

    async def acknowledged(self, block: int) -> None:
        await self._copy.outbox.acknowledged(block)

    def free(self) -> None:
        self._copy.enter(CopyPhase.FREEING)

    async def _next_boundary(self) -> None:
        """Wait for the end of a step, so that the pause begins as far as can be from the next block's due time.

        A session that rests has no due time: it is frozen at once.
        """
        period_s = self._tools.engine.spec.period_s
        since_s = asyncio.get_running_loop().time() - self._copy.ended_at
        if since_s < FRESH * period_s or (since_s > RESTING * period_s and not self._copy.stepping):
            return
        try:
            async with asyncio.timeout(RESTING * period_s):
                await self._copy.step_ended()
        except TimeoutError:
            return
