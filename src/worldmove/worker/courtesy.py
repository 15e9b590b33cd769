"""When a spare block may begin, so that no player waits for it.

A block once begun is not interrupted, so the time to begin one that nobody waits for is right after an owner's
block has ended, when the next list is nearly a period away; or when no owner plays here. While a shadow waits
for its session, none begins at all: the install would have to wait for its end, inside somebody's pause.
"""

import asyncio
from collections.abc import Callable

FRESH = 0.1
"""Share of a period after an owner's block in which a spare one may begin."""
RESTING = 1.25
"""Periods without an owner's block after which nobody plays here."""


class Courtesy:
    """One worker's rule for spare blocks."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._owner_ended_at = float("-inf")
        self._shadows = 0
        self._change = asyncio.Event()

    def owner_ended(self) -> None:
        """An owner's block has ended."""
        self._owner_ended_at = asyncio.get_running_loop().time()
        self._change.set()

    def shadow_reserved(self) -> None:
        """A slot waits for a session."""
        self._shadows += 1

    def shadow_ended(self) -> None:
        """It waits no more: the session is played, or was discarded."""
        self._shadows -= 1
        self._change.set()

    def look_again(self) -> None:
        """Something else has changed, which may concern whoever waits."""
        self._change.set()

    async def permission(self, unless: Callable[[], bool]) -> None:
        """Return when a spare block may begin, or when ``unless`` says that there is none to begin any more."""
        while not unless() and ((wait_s := self._wait_s()) is None or wait_s > 0):
            self._change.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._change.wait()
            except TimeoutError:
                continue

    def _wait_s(self) -> float | None:
        """Return how long nobody may begin unless something changes; None: for as long as nothing does."""
        if self._shadows:
            return None
        since_s = asyncio.get_running_loop().time() - self._owner_ended_at
        if since_s <= FRESH * self._period_s:
            return 0.0
        return RESTING * self._period_s - since_s
