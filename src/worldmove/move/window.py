"""The write window of a shadow: what a path is lent of a slot's memory, and how it is taken back.

Closed, nothing that was made of the loan can write any more: not the loan, not a part of it, not an array over it.
A path that keeps any of these has its move aborted: what it wrote late would land in a session that is played.
"""

import weakref
from collections.abc import Sequence

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.transport.base import Channel

_HELD = "the path still holds the memory that it was given to write to"


class WriteWindow:
    """Opens over all of an arena, once."""

    def __init__(self, arena: Arena) -> None:
        # A part of a view outlives the view's release, so the loan is of an object that every part keeps alive.
        self._lender = arena.memory.view()
        self.view = self._lender.data

    async def fill(self, channel: Channel, extents: Sequence[Extent]) -> None:
        """Let a path write. Raises TransportError."""
        await channel.pull(extents, self.view)

    def close(self) -> None:
        """Take the loan back. Raises TransportError if the path holds on to any of it."""
        lender = weakref.ref(self._lender)
        del self._lender
        try:
            self.view.release()
        except BufferError as error:
            raise TransportError(_HELD) from error
        if lender() is not None:
            raise TransportError(_HELD)

    def abandon(self) -> None:
        """Take back what can be, for an attempt that has failed already: its slot waits for the path's release."""
        try:
            self.view.release()
        except BufferError:
            return
