"""The path between two devices of one host, or within one: the destination maps the source's slot, and copies.

    source       a card with the handle of its slot's allocation, had by a ticket like any arena of ``shm``
                 and a gate (``state.gate``), which is lent with it
    destination  fetches the card, maps the allocation, touches it               before the freeze
                 looks up the way to each of its pages                           right before it
                 copies what may come early into its own slot                    as soon as the source stands still
                 copies the rest; its device opens the gate after each           at the boundary
                 unmaps it                                                       at the end

Nobody but the destination writes its slot. A map of a device's memory cannot be made for reading only, so this path is
for workers that are the same user's, as the card's socket asks the kernel; what it brought is verified all the same.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

import msgspec
import numpy as np

from worldmove.errors import NoMemory, TransportError
from worldmove.limits import MAX_TICKET_BYTES
from worldmove.state.arena import Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow, joined
from worldmove.state.extent import Extent
from worldmove.state.gate import Gate, opened_gate
from worldmove.state.memory import HANDLE_BYTES, DeviceMemory, MemoryKit, Part, PendingCopy
from worldmove.transport.base import Blocking, Lending, Transport
from worldmove.transport.pieces import check_extents
from worldmove.units import PAGE_BYTES

CARD_BYTES = 1024

T = TypeVar("T")


class Card(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What maps a slot."""

    handle: Annotated[bytes, msgspec.Meta(min_length=1, max_length=HANDLE_BYTES)]
    device_id: Annotated[str, msgspec.Meta(max_length=128)]
    size: Annotated[int, msgspec.Meta(gt=0, lt=1 << 50)]
    gate: Annotated[bytes, msgspec.Meta(max_length=MAX_TICKET_BYTES)] = b""
    """The ticket of the slot's gate; empty where it has none."""


class Peer:
    """Exports and connects for one process and its device."""

    name = "peer"

    def __init__(self, *, kit: MemoryKit, cards: Transport, blocking: Blocking) -> None:
        """``cards`` is the path over which a card is had: shared memory."""
        self._kit = kit
        self._cards = cards
        self._blocking = blocking
        self._exports: dict[bytes, tuple[Arena, bytes]] = {}
        """The page of each card that is lent, and the ticket of its gate."""

    async def export(self, arena: Arena) -> bytes:
        """Refuse: raises TransportError."""
        raise TransportError("peer reads a device's memory, and this slot lies in host memory")

    async def export_device(self, arena: DeviceArena) -> bytes:
        """Let ``arena`` be mapped by whoever holds the ticket returned and runs as this user."""
        handle = arena.handle
        try:
            held = Arena(PAGE_BYTES, "worldmove-card")
        except NoMemory as error:  # others are played on
            raise TransportError(f"the device's slot cannot be lent: {error}") from error
        gate = await self._gate(arena)
        card = Card(handle, self._kit.device_id, arena.size, gate)
        text = msgspec.msgpack.encode(card)
        held.buffer[: len(text) + 2] = len(text).to_bytes(2, "little") + text
        ticket = await self._cards.export(held)
        self._exports[ticket] = held, gate
        return ticket

    async def withdraw(self, ticket: bytes) -> None:
        """End an export. Channels already connected keep what they mapped. Idempotent."""
        await self._cards.withdraw(ticket)
        held, gate = self._exports.pop(ticket, (None, b""))
        if held is not None:
            held.close()
        if gate:
            await self._cards.withdraw(gate)

    async def connect(self, ticket: bytes) -> "PeerChannel":
        """Fetch the card and map what it names. Raises TransportError."""
        card = await self._card(ticket)
        maps, gates = list[DeviceMemory](), list[Gate]()
        try:
            await self._blocking(lambda: maps.append(self._kit.open(card.handle, card.size)))
            await self._open_gate(card.gate, gates)
        except BaseException:  # nobody else knows of a map whose caller was cancelled while it was made
            releases = [each.release for each in maps] + [each.release for each in gates]
            await self._blocking(lambda: _all(releases))  # in one go: it may be cancelled once more
            raise
        return PeerChannel(maps[0], self._kit, self._blocking, gates[0] if gates else None)

    async def _gate(self, arena: DeviceArena) -> bytes:
        """Lend the slot's gate; return its ticket, empty where there can be none: the path works without."""
        if isinstance(self._cards, Lending):
            with suppress(TransportError):
                return await self._cards.lend(await self._blocking(arena.make_gate))
        return b""

    async def _open_gate(self, ticket: bytes, into: list[Gate]) -> None:
        """Open a source's gate, where it has lent one that can be had."""
        if ticket and isinstance(self._cards, Lending):
            with suppress(TransportError):
                descriptor = await self._cards.borrow(ticket)
                await self._blocking(lambda: into.append(opened_gate(descriptor, self._kit)))

    async def _card(self, ticket: bytes) -> Card:
        channel = await self._cards.connect(ticket)
        page = np.zeros(PAGE_BYTES, dtype=np.uint8)
        try:
            await channel.pull([Extent(offset=0, length=CARD_BYTES)], page.data)
        finally:
            await channel.close()
        length = int.from_bytes(page[:2].tobytes(), "little")
        try:
            return msgspec.msgpack.decode(page[2 : 2 + length].tobytes(), type=Card)
        except msgspec.MsgspecError as error:
            raise TransportError(f"not a card of a device's slot: {error}") from error


def _all(releases: Sequence[Callable[[], None]]) -> None:
    for release in releases:
        release()


class PeerChannel:
    """A map of another process's slot on a device."""

    def __init__(self, memory: DeviceMemory, kit: MemoryKit, blocking: Blocking, gate: Gate | None = None) -> None:
        """``gate``: the source's, if it has lent one."""
        self._memory: DeviceMemory | None = memory
        self._kit = kit
        self._blocking = blocking
        self._gate = gate
        self._last: PendingCopy | None = None

    async def pull(self, extents: Sequence[Extent], into: memoryview) -> None:
        """Refuse: raises TransportError."""
        raise TransportError("peer brings bytes to a device, and this slot lies in host memory")

    async def pull_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> None:
        """Copy each extent to the same offset of ``into``, by one launch, off the loop. Raises TransportError."""
        # In one hop, and not cancelled in between: a launch cannot be taken back, only waited for.
        await self._blocking(lambda: self.start_to_device(extents, into).wait())

    def start_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> PendingCopy:
        """Begin to copy each extent to the same offset of ``into``, by one launch. Raises TransportError."""
        return self.ready_to_device(extents, into)()

    def ready_to_device(self, extents: Sequence[Extent], into: DeviceWindow) -> Callable[[], PendingCopy]:
        """Lay out what ``start_to_device`` begins; return what begins it, once. Both raise TransportError."""
        memory = self._mapped()
        check_extents(joined(extents), memory.num_bytes, into.size)
        ready = into.ready_copy(memory.address, extents)

        def begin() -> PendingCopy:
            self._mapped()
            self._last = ready()
            return self._last

        return begin

    def _mapped(self) -> DeviceMemory:
        if self._memory is None:
            raise TransportError("the channel is closed")
        return self._memory

    def walk(self) -> None:
        """Have the device read a few bytes of every page of the map; waits for that. Raises TransportError."""
        if self._memory is not None:
            self._last = self._kit.start_walk(Part(self._memory.address, self._memory.num_bytes))
            self._last.wait()

    def tell_read(self, number: int) -> None:
        """Have the source's gate say a number, once all that was started before has been read."""
        if self._gate is not None and self._memory is not None:
            with suppress(TransportError):
                self._last = self._gate.open_after_pulls(number)

    async def off_the_loop(self, function: Callable[[], T], /) -> T:
        """Run it in the thread that this path has for its copies."""
        return await self._blocking(function)

    async def close(self) -> None:
        """Unmap it, once nothing reads it any more. Idempotent."""
        memory, self._memory = self._memory, None
        if memory is not None:
            await self._blocking(lambda: self._let_go(memory))

    def _let_go(self, memory: DeviceMemory) -> None:
        try:
            if self._last is not None:
                self._last.wait()
        finally:
            memory.release()
            if self._gate is not None:
                self._gate.release()
