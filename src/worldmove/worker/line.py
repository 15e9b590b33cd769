"""What a copy's blocks still need after their step, one behind the other, while the engine computes the next one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Line:
    """One copy's: at most one block is behind it, so nothing piles up."""

    def __init__(self, on_over: Callable[[], None]) -> None:
        """``on_over`` hears whenever a block is done, or has failed."""
        self._on_over = on_over
        self._last: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether what was put last is done, or has failed, and nobody has asked (``empty``)."""
        return self._last is not None and self._last.done()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return self._last is None or self._last.done()

    async def empty(self) -> None:
        """Return once nothing is on its way. Raises what that has raised."""
        last, self._last = self._last, None
        if last is not None:
            await last

    async def put(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a block's, once the one before it is done."""
        try:
            await self.empty()
        except BaseException:
            work.close()
            raise
        self._last = asyncio.create_task(work)
        self._last.add_done_callback(lambda _: self._on_over())
