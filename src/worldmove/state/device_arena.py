"""A slot's memory on a device: one allocation outside every pool, named to other processes by one handle."""

from worldmove.state.device_window import DeviceWindow
from worldmove.state.gate import OwnGate
from worldmove.state.memory import HostBytes, MemoryKit, Part
from worldmove.units import PAGE_BYTES, round_up


class DeviceArena:
    """One slot's memory. It begins at a multiple of 256, so that addresses keep their remainders."""

    def __init__(self, size: int, name: str, kit: MemoryKit) -> None:
        """Take ``size`` bytes (rounded up to whole pages) of the kit's device. Raises ArenaFull, NoMemory."""
        self.size = round_up(max(size, 1), PAGE_BYTES)
        self.name = name
        self.kit = kit
        self._memory = kit.allocate(self.size)
        self._handle = b""
        self.gate: OwnGate | None = None
        """What says that another process has read what it is to read of this; None where no path has asked for one."""

    @property
    def address(self) -> int:
        """Where it begins, in this process."""
        return self._memory.address

    @property
    def handle(self) -> bytes:
        """What another process of this host maps it with. Made once. Raises TransportError."""
        self._handle = self._handle or self.kit.export(self._memory)
        return self._handle

    def make_gate(self) -> OwnGate:
        """Return its gate, made once: pinning takes its time. Raises TransportError."""
        self.gate = self.gate or OwnGate(self.kit)
        return self.gate

    def part(self, offset: int, length: int) -> Part:
        """Return where a run of its bytes lies."""
        return Part(self.address + offset, length)

    @property
    def owner(self) -> object:
        """What a tensor over it keeps alive."""
        return self._memory.owner

    def poison(self) -> None:
        """Fill it with a fixed pattern that differs from place to place and is nowhere zero."""
        self.kit.poison(self.part(0, self.size))

    def read(self, offset: int, length: int) -> HostBytes:
        """Return some of its bytes, copied to host memory."""
        return self.kit.read(self.part(offset, length))

    def write(self, offset: int, data: HostBytes) -> None:
        """Copy host bytes into it."""
        self.kit.write(self.address + offset, data)

    def lend(self) -> DeviceWindow:
        """Open a window over all of it."""
        return DeviceWindow(self.kit, self.part(0, self.size))

    def close(self) -> None:
        """Give the memory back. No tensor may lie in it any more: a device's memory has no owner who would know."""
        if self.gate is not None:
            self.gate.release()
        self._memory.release()
