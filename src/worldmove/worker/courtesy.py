"""When a spare block may begin, so that no player waits for it.

A block once begun is not interrupted, so the time to begin one that nobody waits for is right after an owner's
block has ended, when the next list is nearly a period away; or when no owner plays here. Who says how long its block
takes may begin whenever nobody's block is late for it: a list comes a period before its block is due, so owners whose
blocks take a part of that can wait for one to end. While a shadow waits for its session,
none begins at all: the install would have to wait for its end, inside somebody's pause.
"""

import asyncio
from collections.abc import Callable

from worldmove.worker.leeway import makes_nobody_late

FRESH = 0.1
"""Share of a period after an owner's block in which a spare one may begin."""
RESTING = 1.25
"""Periods without an owner's block after which nobody plays here."""


class Courtesy:
    """One worker's rule for spare blocks."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._owner_ended_at = float("-inf")
        self._begun: dict[str, float] = {}
        """By session that is played here: when its newest list came."""
        self._in_hand: dict[str, None] = {}
        self._num_holds = 0
        self._change = asyncio.Event()

    def owner_began(self, session: str) -> None:
        """A session that is played here has its next list."""
        now = asyncio.get_running_loop().time()
        self._begun = {name: at for name, at in self._begun.items() if now - at <= RESTING * self._period_s}
        self._begun[session] = now
        self._in_hand[session] = None

    def owner_ended(self, session: str = "") -> None:
        """An owner's block has ended."""
        self._in_hand.pop(session, None)
        self._owner_ended_at = asyncio.get_running_loop().time()
        self._change.set()

    def owner_let_go(self, session: str) -> None:
        """A block that was begun is over, or was not made: an owner's or not."""
        if session in self._in_hand:
            del self._in_hand[session]
            self._change.set()

    def hold_back(self) -> None:
        """A slot waits for a session, or a session is about to leave."""
        self._num_holds += 1

    def let_go_on(self) -> None:
        """No more: the session is played, or was discarded, or has gone."""
        self._num_holds -= 1
        self._change.set()

    def look_again(self) -> None:
        """Something else has changed, which may concern whoever waits."""
        self._change.set()

    def ages(self) -> tuple[float, ...]:
        """Return how long ago the newest list came of each session that is played here and does not rest, seconds."""
        now = asyncio.get_running_loop().time()
        return tuple(now - at for at in self._begun.values() if now - at <= RESTING * self._period_s)

    async def permission(self, unless: Callable[[], bool], takes_s: float | None = None, *, own_holds: int = 0) -> None:
        """Return when a spare block may begin, or when ``unless`` says that there is none to begin any more.

        ``takes_s``: how long it takes. None: not known, and it may begin while an owner's block is fresh.
        ``own_holds``: how many of those who hold back wait for this.
        """
        while not unless() and ((wait_s := self._wait_s(takes_s, own_holds)) is None or wait_s > 0):
            self._change.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._change.wait()
            except TimeoutError:
                continue

    def allows(self, takes_s: float | None, *, own_holds: int = 0) -> bool:
        """Whether a spare block may begin now."""
        wait_s = self._wait_s(takes_s, own_holds)
        return wait_s is not None and wait_s <= 0

    def _wait_s(self, takes_s: float | None, own_holds: int) -> float | None:
        """Return how long nobody may begin unless something changes; None: for as long as nothing does."""
        if self._num_holds > own_holds:
            return None
        if takes_s is not None:
            return 0.0 if self._makes_nobody_late(takes_s) else self._rests_in_s()
        since_s = asyncio.get_running_loop().time() - self._owner_ended_at
        return 0.0 if since_s <= FRESH * self._period_s else RESTING * self._period_s - since_s

    def _makes_nobody_late(self, takes_s: float) -> bool:
        """Not while an owner's block is in hand, or waits: that goes first."""
        if self._in_hand:
            return False
        now = asyncio.get_running_loop().time()
        return makes_nobody_late(now, takes_s, [now - age for age in self.ages()], self._period_s)

    def _rests_in_s(self) -> float | None:
        """Return when whoever plays here would count as resting; None while a block is in hand."""
        if self._in_hand:
            return None
        now = asyncio.get_running_loop().time()
        return max((at + RESTING * self._period_s - now for at in self._begun.values()), default=0.0)
