"""The contract of a transport: extents of a slot at one end become bytes in a slot at the other.

A transport knows nothing of sessions, epochs or digests, and its success proves nothing: whoever installs
what it brought verifies it afterwards. The destination pulls, into memory that only it can write; the
source's part is to let its arena be read. So closing the write window is the destination's own act.

    source       ticket = await transport.export(arena)         the arena may be read until withdrawn
    destination  channel = await transport.connect(ticket)      before the freeze: dial, map, pre-touch
                 await channel.pull(extents, into)              at the boundary
                 await channel.close()                          the handle is released
    source       await transport.withdraw(ticket)
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.extent import Extent
from worldmove.state.memory import PendingCopy

T = TypeVar("T")


class Blocking(Protocol):
    async def __call__(self, function: Callable[[], T], /) -> T:
        """Run a function that computes or copies for milliseconds, away from the event loop.

        Cancelled, it waits until the function has ended before it raises: nothing runs on behind the caller. Raises
        what the function does, and NoMemory where it finds no memory.
        """
        ...


class Channel(Protocol):
    """A destination's way to one exported arena."""

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Copy each extent of the exported arena to the same offset of ``into``. Raises TransportError.

        When it returns, or raises, or is cancelled, nothing of it writes to ``into`` any more.
        """
        ...

    async def close(self) -> None:
        """Release everything the channel holds of the source. Idempotent."""
        ...


@runtime_checkable
class DeviceChannel(Protocol):
    """A channel that can bring its extents to a device's memory."""

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent of the exported arena to the same offset of ``into``. Raises TransportError.

        When it returns, or raises, or is cancelled, nothing of it writes any more.
        """
        ...


@runtime_checkable
class PromptChannel(Protocol):
    """A channel that starts all copies at once, by the device's own kit, and returns before they are over."""

    def start_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> PendingCopy:
        """Begin what ``pull_to_device`` does. Raises TransportError."""
        ...

    def ready_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> Callable[[], PendingCopy]:
        """Lay out what ``start_to_device`` begins; return what begins it, once. Both raise TransportError."""
        ...

    def walk(self) -> None:
        """Let the device find its ways to the exported arena's pages, for the copies that come next; waits for that.

        Raises TransportError.
        """
        ...

    def tell_read(self, number: int) -> None:
        """Have the source's gate say a number (``state.gate``) once all that was started here has been read, if it has
        lent one. Where it cannot be said, word that the bytes have landed does as well.
        """
        ...

    async def off_the_loop(self, function: Callable[[], T], /) -> T:
        """Start copies, or wait for them, where nobody else waits."""
        ...


@runtime_checkable
class DeviceTransport(Protocol):
    """A path that can let a slot on a device be read."""

    async def export_device(self, arena: DeviceArena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned (at most MAX_TICKET_BYTES)."""
        ...

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected keep what they mapped. Idempotent."""
        ...

    async def connect(self, ticket: bytes) -> "Channel":
        """Connect to an exported arena. Raises TransportError."""
        ...


class HasDescriptor(Protocol):
    @property
    def fd(self) -> int: ...


@runtime_checkable
class Lending(Protocol):
    """A path over which a descriptor is had as it is: what it names may be written by both."""

    async def lend(self, memory: HasDescriptor) -> bytes:
        """Let a descriptor be had by whoever holds the ticket returned and runs as this user."""
        ...

    async def borrow(self, ticket: bytes) -> int:
        """Return what a ticket names; it is the caller's to close. Raises TransportError."""
        ...


class Transport(Protocol):
    """One kind of path between slots."""

    @property
    def name(self) -> str: ...

    async def export(self, arena: Arena) -> bytes:
        """Let ``arena`` be read by whoever holds the ticket returned (at most MAX_TICKET_BYTES)."""
        ...

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected keep what they mapped. Idempotent."""
        ...

    async def connect(self, ticket: bytes) -> Channel:
        """Connect to an exported arena. Raises TransportError."""
        ...
