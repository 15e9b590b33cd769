"""A word that one end waits for from the other: it comes once, and counts as it came first."""

import asyncio
from typing import Generic, TypeVar

from worldmove.move.attempt import GaveUpError
from worldmove.move.protocol import DestinationEvent

T = TypeVar("T")


class Word(Generic[T]):
    """One of them."""

    def __init__(self, at_most_s: float, otherwise: str) -> None:
        """``otherwise``: the sentence where it does not come in time."""
        self._at_most_s = at_most_s
        self._otherwise = otherwise
        self._came: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def take(self, word: T) -> bool:
        """Take it; say whether it is the first."""
        is_first = not self._came.done()
        if is_first:
            self._came.set_result(word)
        return is_first

    @property
    def said(self) -> T | None:
        """It, if it has come."""
        return self._came.result() if self._came.done() else None

    async def heard(self) -> T:
        """Return it. Raises GaveUpError(TIME_OUT)."""
        try:
            async with asyncio.timeout(self._at_most_s):
                return await self._came
        except TimeoutError as error:
            raise GaveUpError(DestinationEvent.TIME_OUT, "time_out", self._otherwise) from error
