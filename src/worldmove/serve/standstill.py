"""How long a world stands still for a move: waits for the block that ends its newest gap, and closes it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from worldmove.fleet.reports import Outcome
from worldmove.serve.gap import Gap
from worldmove.serve.screen import Shown


class Standstill:
    """One session's newest gap, and whoever waits for a block that is to be shown."""

    def __init__(self, *, overdue_s: Callable[[], float | None], will_go_on: Callable[[], bool]) -> None:
        """``overdue_s``: how late the next block is by now. ``will_go_on``: whether there will be a next one."""
        self.gap: Gap | None = None
        """Of the newest move."""
        self._overdue_s = overdue_s
        self._will_go_on = will_go_on
        self._progress = asyncio.Event()

    def begin(self, attempt: str, epoch: int) -> None:
        """A try begins: from its move's first one on, late blocks count."""
        if self.gap is None or self.gap.ended is not None:
            self.gap = Gap(attempt=attempt, epoch=epoch)
        self.gap.attempt = attempt

    def ended(self, outcome: Outcome) -> None:
        """The move has ended."""
        if self.gap is not None:
            self.gap.ended = outcome

    def shown(self, shown: Shown) -> None:
        """A block was shown."""
        if self.gap is not None:
            self.gap.shown(shown.block.epoch, shown.late_s)

    def look_again(self) -> None:
        """Have whoever waits look again: a block was shown, or the world rests or goes on."""
        self._progress.set()

    async def over(self, gap: Gap, within_s: float) -> None:
        """Return once a gap is over: after a time it is closed, and what is due by then and not here counts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.until(lambda: gap.is_over)
        gap.close(self._overdue_s())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds, or no block will come."""
        while not holds() and self._will_go_on():
            self._progress.clear()
            await self._progress.wait()
