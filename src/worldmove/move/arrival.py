"""A state on its way into a slot on a device, by copies that start at once and that nobody waits for in between.

    begin     what the offer says may come early, as soon as nothing writes it at the source       maybe
    start     the rest; the window is sealed; the source's gate will say that all was read, as it did of the early part
    landed    wait for all of it, and close the window

What the device is asked to do after ``start`` comes after all of it, on the device itself.
"""

import asyncio
from collections.abc import Callable, Sequence

from worldmove.errors import TransportError
from worldmove.move.device_path import DeviceWriteWindow, open_window
from worldmove.state.arena import AnyArena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.gate import early_number
from worldmove.state.memory import PendingCopy
from worldmove.transport.base import Channel, PromptChannel


class Arrival:
    """One slot's window, and the path that copies through it."""

    def __init__(self, window: DeviceWriteWindow, channel: PromptChannel, number: int) -> None:
        """``number``: what the gate says in this attempt."""
        self.has_begun = False
        """Whether some of it was begun before all was known."""
        self._window = window
        self._channel = channel
        self._number = number
        self._early: Callable[[], object] = _nothing
        self._started: PendingCopy | None = None

    async def make_ready(self, extents: Sequence[Extent]) -> None:
        """Lay out what may come early. Raises TransportError."""
        self._early = await self._channel.off_the_loop(lambda: self._window.ready(self._channel, extents))

    async def begin(self) -> None:
        """Begin to copy what may come early: it may not be all, or may come again. Raises TransportError."""
        # Not here: the kit may be at work for somebody else, and the loop serves all worlds.
        await self._channel.off_the_loop(self._begin)

    async def start(self, extents: Sequence[Extent]) -> None:
        """Begin to copy the rest. Nothing more can be begun. Raises TransportError."""
        await self._channel.off_the_loop(lambda: self._start(extents))

    async def landed(self, at_most_s: float) -> None:
        """Wait until all of it is here, and close the window. Raises TransportError, TimeoutError."""
        started = self._started
        if started is None:
            raise TransportError("nothing was started")
        async with asyncio.timeout(at_most_s):
            await self._channel.off_the_loop(started.wait)
        self._window.close()

    def abandon(self) -> None:
        """The attempt has failed: its slot waits for the path's release. Idempotent."""
        self._window.abandon()

    def _begin(self) -> None:
        self.has_begun = True
        self._early()
        self._channel.tell_read(early_number(self._number))

    def _start(self, extents: Sequence[Extent]) -> None:
        self._started = self._window.start(self._channel, extents)
        if not self.has_begun:
            self._channel.tell_read(early_number(self._number))
        self._channel.tell_read(self._number)


def _nothing() -> None:
    """Nothing was laid out."""


def is_prompt(arena: AnyArena, channel: Channel | None) -> bool:
    """Say whether a path starts copies into a slot at once."""
    return isinstance(arena, DeviceArena) and isinstance(channel, PromptChannel)


def arrival_in(arena: AnyArena, channel: Channel | None, number: int) -> Arrival:
    """Open a slot's window for copies that start at once. Raises TransportError where there are none."""
    window = open_window(arena)
    if not isinstance(channel, PromptChannel) or not isinstance(window, DeviceWriteWindow):
        window.abandon()
        raise TransportError("this path starts no copies at once")
    return Arrival(window, channel, number)
