"""Blocks whose pictures were sent and have not left the gateway yet: what a worker says meanwhile waits for them."""

import asyncio


class OnTheirWay:
    """By session, the newest block that was sent."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._none = asyncio.Event()
        self._none.set()

    def sent(self, session: str, block: int) -> None:
        """A block was sent."""
        self._newest[session] = block
        self._none.clear()

    def left(self, session: str, block: int) -> None:
        """Every block of a session up to this one has left."""
        if self._newest.get(session, block) <= block:
            self.forget(session)

    def forget(self, session: str) -> None:
        """Nobody here hears of this session any more."""
        self._newest.pop(session, None)
        if not self._newest:
            self._none.set()

    async def none(self) -> None:
        """Return once every block has left."""
        await self._none.wait()
