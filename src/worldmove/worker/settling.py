"""How a session comes to stand before a block for its freeze: at a quiet moment, or where its follower is met.

While it stands, and nobody waits for it, what makes the freeze short is made ready (``worker.known_ahead``).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

from worldmove.errors import StateRefused
from worldmove.move.source_copy import Resting, WhenReady
from worldmove.worker.boundaries import RESTING, boundary_after, next_boundary, num_ahead
from worldmove.worker.calm import PATIENCE, PATIENCE_S, Asking, Calm
from worldmove.worker.engine_use import EngineUse
from worldmove.worker.freezing import rolled_in
from worldmove.worker.known_ahead import KnownAhead
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.tools import Tools


class Settling:
    """Of one copy, for one move."""

    def __init__(self, copy: SessionCopy, tools: Tools, engine: EngineUse, calm: Calm, known: KnownAhead) -> None:
        self._copy = copy
        self._tools = tools
        self._engine = engine
        self._calm = calm
        self._known = known

    async def meet(self, tell: Callable[[int], None]) -> None:
        """See ``SourceCopy.meet``."""
        copy, period_s = self._copy, self._tools.spec.period_s
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

    async def settle(self, ready: WhenReady | None, *, brings: bool) -> WhenReady | None:
        """Come to stand before a block, and return who is to be asked yet whether the other end is quiet, if anybody.

        What is held back for that goes on where it fails. See ``SourceCopy.settle``.
        """
        self._calm.begin()
        try:
            await self._until_its_own()
            if self._copy.stops_before is not None:  # it stands already, and its pictures are still leaving
                async with self._resolving(is_pulled=False):
                    return await self._come_to_rest(ready, brings=brings)
            if ready is not None and not brings:  # what is brought before it is resolved for that
                ready = partial(self._resolved_meanwhile, ready)
            return await self._come_to_rest(ready, brings=brings)
        except BaseException:
            self._calm.end()
            raise

    async def rest(self) -> Resting:
        """Bring into the arena what has left it, while it stands still. Raises StateRefused, ArenaFull."""
        async with self._engine.at_hand() as engine_thread:
            return await engine_thread(self._bring_home)

    def _bring_home(self) -> Resting:
        ahead = self._known.make_ready()
        rolled = rolled_in(self._tools.engine, self._copy.engine_session)
        manifest = ahead.known.capture.manifest
        return Resting(block=ahead.block, manifest=manifest, placement=ahead.placement, rolled=rolled)

    async def _until_its_own(self) -> None:
        """While a copy replays, its state is of a block that was shown already."""
        while self._copy.replays:
            await self._copy.step.ended()

    def _stop_before(self, block: int, tell: Callable[[int], None]) -> None:
        self._copy.stop_before(block)
        tell(block)

    async def _come_to_rest(self, ready: WhenReady | None, *, brings: bool) -> WhenReady | None:
        """Play no further than a boundary, at a quiet moment: nobody waits for the session, its next list is not here.

        Where the list comes first, it is played, and the next boundary tried. The last is taken as it comes: who was
        not asked then is returned, to be waited for with the engine taken. The only one at which it is met is taken
        when its follower stands there too, or its list is here; and so is the last one where what differs comes over
        before it: asked with the engine taken, the other end would begin with that anew.
        """
        copy, period_s = self._copy, self._tools.spec.period_s
        now = asyncio.get_running_loop().time
        try_until, over_at = now() + min(PATIENCE * period_s, PATIENCE_S), now() + PATIENCE_S
        is_met = copy.stops_before is not None
        waits, asking = is_met or brings, Asking(ready)
        if not is_met:
            await next_boundary(copy, period_s)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(over_at):
                while True:
                    self._engine.require_live()
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
            async with self._engine.at_hand() as engine_thread:
                await engine_thread(partial(self._known.make_ready_if_offered, is_pulled=is_pulled))
