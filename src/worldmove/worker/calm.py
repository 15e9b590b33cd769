"""Keeps away from a session's pause what can wait: other sessions' blocks, spare blocks, pictures on their way.

A pause is a few milliseconds of Python in two processes. A block that is computed beside it, here or there, takes the
lock and the device's time slices; one in hand would have to be waited for; and while pictures travel, the words of the
move queue behind them. So a source waits for the moment at which there is none of this, for as long as its player does
not wait for it: until the next list is here. Then that block is played, and the next boundary tried.

Nobody's block is held back but while a destination waits for the freeze, and in the pause itself: at each end for less
than the time that a worker has to spare which can be moved to at all.
"""

import asyncio
from contextlib import suppress

from worldmove.move.source_copy import WhenReady
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Hold, Turn

PATIENCE, PATIENCE_S = 1.5, 1.6
"""Periods after which no further boundary is tried, where the next list comes before a quiet moment; and the seconds
until it is frozen in any case."""
GRACE = 0.4
"""Periods for which, at the last boundary, the engine is kept free here until the other end is quiet too: as long as a
block takes there, and its pictures."""
PICTURES = 0.1
"""Periods for which pictures of others are let leave, where blocks wait for that."""
KEPT_FREE = 0.45
"""Periods for which a destination waits for the freeze, at most: for a block in hand at the source, and a pause."""
STANDS = 0.1
"""Periods for which a follower that stands where it is met keeps its worker's engine free for the pause, at most."""
LIST = 0.1
"""Periods for which it waits on once the list of the block is here before which the freeze was to be."""
PAUSE = 0.2
"""Periods for which the pause keeps others from the source, at most: over a slow path they go on beside it."""


class Calm:
    """What one session's source holds back at its worker."""

    def __init__(self, copy: SessionCopy, tools: Tools) -> None:
        self._copy = copy
        self._tools = tools
        self._hold: Hold | None = None
        self._holds_spare = False

    def begin(self) -> None:
        """A freeze was asked for: no spare block begins any more, or the freeze would have to wait for it."""
        if not self._holds_spare:
            self._holds_spare = True
            self._tools.courtesy.hold_back()

    async def come(self, ready: WhenReady | None) -> bool:
        """Wait for a quiet moment, and say whether it came before the next list did.

        The other end is asked when it is quiet here: what is held back there waits for what is in hand here.
        """
        working = asyncio.create_task(self._quiet(ready))
        working.add_done_callback(lambda _: self._copy.look_again())
        try:
            while self._nobody_waits() and not working.done():
                await self._copy.turned()
            return working.done()
        finally:
            await _ended(working)

    async def _quiet(self, ready: WhenReady | None) -> None:
        async with self._tools.turns.take(Turn.SPARE):
            pass  # nobody else wants it
        await self._tools.on_their_way.none()
        if ready is not None:
            await ready()

    async def keep(self, ready: WhenReady | None) -> None:
        """With the engine in hand: let no block but the pause begin until ``end``, or for a while.

        A block may have been in hand until now: its pictures leave first. ``ready``: where nobody was asked yet.
        """
        self._hold = self._tools.turns.hold(self._let_spare)
        with suppress(TimeoutError):
            async with asyncio.timeout((PICTURES if ready is None else GRACE) * self._period_s):
                if ready is not None:
                    await ready()
                await self._tools.on_their_way.none()
        self._hold.lapse_in(PAUSE * self._period_s)

    def end(self) -> None:
        """The pause is over, or there is none. Idempotent."""
        if self._hold is not None:
            self._hold.end()
            self._hold = None
        self._let_spare()

    @property
    def _period_s(self) -> float:
        return self._tools.spec.period_s

    def _nobody_waits(self) -> bool:
        copy = self._copy
        return copy.phase is CopyPhase.LIVE and copy.inputs.get(copy.next_block) is None

    def _let_spare(self) -> None:
        if self._holds_spare:
            self._holds_spare = False
            self._tools.courtesy.let_go_on()


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Asking:
    """Whether the other end was asked at this boundary whether it is quiet."""

    def __init__(self, ready: WhenReady | None) -> None:
        self.is_asked = False
        self._ready = ready

    async def ask(self) -> None:
        if self._ready is not None:
            self.is_asked = True
            await self._ready()
