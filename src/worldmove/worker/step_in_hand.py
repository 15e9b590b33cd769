"""The step of a copy that is in hand, and who waits for its end."""

import asyncio
from collections.abc import Callable


class StepInHand:
    """One copy's: at most one at a time."""

    def __init__(self, when_over: Callable[[], None]) -> None:
        """``when_over`` is called at each end."""
        self._when_over = when_over
        self._none = asyncio.Event()
        self._none.set()
        self._ended = asyncio.Event()

    @property
    def is_there(self) -> bool:
        """Whether there is one."""
        return not self._none.is_set()

    def begin(self) -> None:
        """A step takes its turn."""
        self._none.clear()

    def end(self) -> None:
        """It has ended, or gave its turn back."""
        self._none.set()
        self._ended.set()
        self._when_over()

    async def over(self) -> None:
        """Return once there is none."""
        await self._none.wait()

    async def ended(self) -> None:
        """Return at the end of the one in hand, or of the next one."""
        self._ended.clear()
        await self._ended.wait()
