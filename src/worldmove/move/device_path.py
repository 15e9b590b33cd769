"""Slots of either kind, over paths that serve one: what does not fit together is refused, or ends the attempt."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from worldmove.errors import TransportError
from worldmove.move.window import WriteWindow
from worldmove.state.arena import AnyArena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.memory import PendingCopy
from worldmove.transport.base import Channel, DeviceChannel, DeviceTransport, PromptChannel, Transport


async def export_slot(transport: Transport, arena: AnyArena) -> bytes:
    """Let a slot be read over a path. Raises TransportError."""
    if not isinstance(arena, DeviceArena):
        return await transport.export(arena)
    if not isinstance(transport, DeviceTransport):
        raise TransportError(f"{transport.name} reads no device's memory")
    return await transport.export_device(arena)


class DeviceWriteWindow:
    """The write window of a slot on a device (``move.window``): a loan that says where, and not at which address."""

    def __init__(self, window: DeviceWindow) -> None:
        self._window = window

    async def fill(self, channel: Channel, extents: Sequence[Extent]) -> None:
        """Let a path write. Raises TransportError."""
        if not isinstance(channel, DeviceChannel):
            raise TransportError("this path brings nothing to a device")
        await channel.pull_to_device(extents, self._window)

    def begin(self, channel: Channel | PromptChannel, extents: Sequence[Extent]) -> PendingCopy | None:
        """Let a path start a part of it at once; None where it cannot. Raises TransportError."""
        return channel.start_to_device(extents, self._window) if isinstance(channel, PromptChannel) else None

    def ready(self, channel: PromptChannel, extents: Sequence[Extent]) -> Callable[[], PendingCopy]:
        """Let a path lay out a part of it; return what starts that, once. Both raise TransportError."""
        return channel.ready_to_device(extents, self._window)

    def start(self, channel: Channel | PromptChannel, extents: Sequence[Extent]) -> PendingCopy | None:
        """Let a path start all of it at once, and nothing after that; None where it cannot. Raises TransportError.

        What this device's kit is asked to begin next comes after it.
        """
        pending = self.begin(channel, extents)
        if pending is not None:
            self._window.seal()
        return pending

    def close(self) -> None:
        """Take the loan back. Raises TransportError if the path still copies."""
        self._window.close()

    def abandon(self) -> None:
        """Take it back for an attempt that has failed already: its slot waits for the path's release."""
        with suppress(TransportError):
            self._window.close()


def open_window(arena: AnyArena) -> WriteWindow | DeviceWriteWindow:
    """Lend a slot's memory to a path."""
    return DeviceWriteWindow(arena.lend()) if isinstance(arena, DeviceArena) else WriteWindow(arena)
