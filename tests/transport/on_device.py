"""A path between slots on a device, seen as one between slots in host memory: the double's memory is host memory."""

from collections.abc import Sequence

import numpy as np

from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.kit_double import DoubleKit
from worldmove.state.memory import Part
from worldmove.transport.base import Channel, DeviceTransport, Transport
from worldmove.transport.wrappers import pull_to_device

KIT = DoubleKit()


class OnDevice:
    """Exports copies of arenas that lie on the double, and pulls to wherever the suite wants it."""

    def __init__(self, inner: Transport) -> None:
        self.name = inner.name
        self._inner = inner

    async def export(self, arena: Arena) -> bytes:
        """Refuse: a bench exports a slot on the double itself."""
        raise AssertionError(f"{self.name} exports slots on a device")

    async def export_device(self, arena: DeviceArena) -> bytes:
        assert isinstance(self._inner, DeviceTransport)
        return await self._inner.export_device(arena)

    async def withdraw(self, ticket: bytes) -> None:
        await self._inner.withdraw(ticket)

    async def connect(self, ticket: bytes) -> "OnDeviceChannel":
        return OnDeviceChannel(await self._inner.connect(ticket))


class OnDeviceChannel:
    """Opens a window over the memory that it is given, and closes it after."""

    def __init__(self, inner: Channel) -> None:
        self._inner = inner

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        address = int(np.frombuffer(into, dtype=np.uint8).ctypes.data)
        window = DeviceWindow(KIT, Part(address, into.nbytes))
        try:
            await pull_to_device(self._inner, extents, window)
        except TransportError:
            window.close()  # which raises, where the path still copies
            raise
        window.close()

    async def close(self) -> None:
        await self._inner.close()
