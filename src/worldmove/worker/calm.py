"""Keeps away from a session's pause what can wait: other sessions' blocks, spare blocks, pictures on their way.

A pause is a few milliseconds of Python in two processes. A block that is computed beside it, here or there, takes the
lock and the device's time slices; one in hand would have to be waited for; and while pictures travel, the words of the
move queue behind them. So a source waits for the moment at which there is none of this, for as long as its player does
not wait for it: until the next list is here, and no longer than a part of a period.

Nobody's block is held back but while a destination waits for the freeze, and in the pause itself: at each end for less
than the time that a worker has to spare which can be moved to at all.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from worldmove.worker.loop import Tools
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.turns import Hold

WAIT = 0.45
"""Periods for which a source waits for a quiet moment: a block of the other end, and its pictures."""
PICTURES = 0.1
"""Periods for which pictures of others are let leave, where blocks wait for that."""
KEPT_FREE = 0.4
"""Periods for which a destination waits for the freeze, at most: for a block in hand at the source, and the pause."""
PAUSE = 0.2
"""Periods for which the pause keeps others from the source, at most: over a slow path they go on beside it."""
PATIENCE = 2.0
"""Periods in which another boundary is tried where the next list comes before a quiet moment."""


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

    async def come(self, ready: Callable[[], Coroutine[Any, Any, None]] | None) -> bool:
        """Wait for a quiet moment, and say whether it came before the next list did.

        ``ready`` returns when the other end is quiet, and waits. One that does not say so is not waited for: True.
        """
        waits_for = [asyncio.create_task(self._tools.on_their_way.none())]
        if ready is not None:
            waits_for.append(asyncio.create_task(ready()))
        return await self._while_nobody_waits(waits_for, WAIT)

    async def keep(self) -> None:
        """With the engine in hand: let pictures leave, and let no block but the pause begin until ``end``, or a while.

        A block may have been in hand until now; its pictures are on their way.
        """
        self._hold = self._tools.turns.hold(self._let_spare)
        await self._while_nobody_waits([asyncio.create_task(self._tools.on_their_way.none())], PICTURES)
        self._hold.lapse_in(PAUSE * self._period_s)

    def end(self) -> None:
        """The pause is over, or there is none. Idempotent."""
        if self._hold is not None:
            self._hold.end()
            self._hold = None
        self._let_spare()

    async def _while_nobody_waits(self, waits_for: Sequence[asyncio.Task[None]], periods: float) -> bool:
        """Wait for all of it, for so many periods and until the session's next list is here. Say if that was not."""
        for waited in waits_for:
            waited.add_done_callback(lambda _: self._copy.look_again())
        try:
            async with asyncio.timeout(periods * self._period_s):
                while self._nobody_waits() and not all(waited.done() for waited in waits_for):
                    await self._copy.turned()
        except TimeoutError:
            return True
        finally:
            for waited in waits_for:
                waited.cancel()
            await asyncio.gather(*waits_for, return_exceptions=True)
        return self._nobody_waits()

    @property
    def _period_s(self) -> float:
        return self._tools.engine.spec.period_s

    def _nobody_waits(self) -> bool:
        copy = self._copy
        return copy.phase is CopyPhase.LIVE and copy.inputs.get(copy.next_block) is None

    def _let_spare(self) -> None:
        if self._holds_spare:
            self._holds_spare = False
            self._tools.courtesy.let_go_on()
