"""A state on its way into a slot on a device, by copies that start at once and that nobody waits for in between.

    begin     what the offer says may come early, as soon as nothing writes it at the source       maybe
    start     the rest; the window is sealed; the source's gate will say that all was read, as it did of the early part
    landed    wait for all of it, and close the window

What the device is asked to do after ``start`` comes after all of it, on the device itself.
Nothing is asked of it here: the kit may be at work for somebody else, and the loop serves all worlds.
"""

import asyncio
from collections.abc import Sequence

from worldmove.move.copying import Copying
from worldmove.state.extent import Extent


class Arrival:
    """One slot's copying, by threads of the path."""

    def __init__(self, copying: Copying) -> None:
        self._copying = copying
        self._off_the_loop = copying.channel.off_the_loop

    @property
    def has_begun(self) -> bool:
        """Whether some of it was begun before all was known."""
        return self._copying.has_begun

    async def make_ready(self, extents: Sequence[Extent]) -> None:
        """Lay out what may come early. Raises TransportError."""
        await self._off_the_loop(lambda: self._copying.make_ready(extents))

    async def begin(self) -> None:
        """Begin to copy what may come early: it may not be all, or may come again. Raises TransportError."""
        await self._off_the_loop(self._copying.begin)

    async def start(self, extents: Sequence[Extent]) -> None:
        """Begin to copy the rest. Nothing more can be begun. Raises TransportError."""
        await self._off_the_loop(lambda: self._copying.start(extents))

    async def landed(self, at_most_s: float) -> None:
        """Wait until all of it is here, and close the window. Raises TransportError, TimeoutError."""
        async with asyncio.timeout(at_most_s):
            await self._off_the_loop(self._copying.wait)
        self._copying.close()

    def abandon(self) -> None:
        """The attempt has failed: its slot waits for the path's release. Idempotent."""
        self._copying.abandon()
