"""Copies into a slot on a device that start at once, and what the source's gate is told of them.

    make ready   what may come early is laid out                                                        maybe
    begin        it is copied, and the gate will say that it was read                                   maybe
    start        the rest is; the window is sealed; the gate will say that all was read
    wait, close  all of it is here

For a thread: the kit may be at work for somebody else.
"""

from collections.abc import Callable, Sequence

from worldmove.errors import TransportError
from worldmove.move.device_path import DeviceWriteWindow, open_window
from worldmove.state.arena import AnyArena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.extent import Extent
from worldmove.state.gate import early_number
from worldmove.state.memory import PendingCopy
from worldmove.transport.base import Channel, PromptChannel


class Copying:
    """Through one slot's window, by one path."""

    def __init__(self, window: DeviceWriteWindow, channel: PromptChannel, number: int | None) -> None:
        """``number``: what the gate says in this attempt; None where it is told nothing."""
        self.channel = channel
        self.has_begun = False
        """Whether some of it was begun before all was known."""
        self._window = window
        self._number = number
        self._early: Callable[[], object] = _nothing
        self._started: PendingCopy | None = None

    def make_ready(self, extents: Sequence[Extent]) -> None:
        """Lay out what may come early. Raises TransportError."""
        self._early = self._window.ready(self.channel, extents)

    def begin(self) -> None:
        """Begin to copy what may come early: it may not be all, or may come again. Raises TransportError."""
        self.has_begun = True
        self._early()
        self._tell_early_read()

    def start(self, extents: Sequence[Extent]) -> None:
        """Begin to copy the rest. Nothing more can be begun. Raises TransportError."""
        self._started = self._window.start(self.channel, extents)
        if not self.has_begun:
            self._tell_early_read()
        if self._number is not None:
            self.channel.tell_read(self._number)

    def wait(self) -> None:
        """Return when all of it is here. Raises TransportError."""
        if self._started is None:
            raise TransportError("nothing was started")
        self._started.wait()

    def close(self) -> None:
        """Close the window. Raises TransportError if the path still copies."""
        self._window.close()

    def abandon(self) -> None:
        """The attempt has failed: its slot waits for the path's release. Idempotent."""
        self._window.abandon()

    def _tell_early_read(self) -> None:
        if self._number is not None:
            self.channel.tell_read(early_number(self._number))


def _nothing() -> None:
    """Nothing was laid out."""


def is_prompt(arena: AnyArena, channel: Channel | None) -> bool:
    """Say whether a path starts copies into a slot at once."""
    return isinstance(arena, DeviceArena) and isinstance(channel, PromptChannel)


def copying_in(arena: AnyArena, channel: Channel | None, number: int | None) -> Copying:
    """Open a slot's window for copies that start at once. Raises TransportError where there are none."""
    window = open_window(arena)
    if not isinstance(channel, PromptChannel) or not isinstance(window, DeviceWriteWindow):
        window.abandon()
        raise TransportError("this path starts no copies at once")
    return Copying(window, channel, number)
