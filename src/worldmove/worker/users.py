"""Who is at a slot's memory beside the steps of the copy in it: the slot is not given back before the last has gone."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Users:
    """Those of one slot."""

    def __init__(self) -> None:
        self._num = 0
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Keep the slot, whatever becomes of the session: somebody reads or writes its memory."""
        self._num += 1
        self._none.clear()
        try:
            yield
        finally:
            self._num -= 1
            if not self._num:
                self._none.set()

    async def gone(self) -> None:
        """Return once nobody is there."""
        await self._none.wait()
