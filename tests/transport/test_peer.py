"""What a destination maps of another's device is given back however its connecting ends."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest

from tests.worker.bench_worker import inline
from worldmove.errors import TransportError
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kit_double import DoubleKit
from worldmove.state.memory import DeviceMemory, Part
from worldmove.transport.loopback import Loopback
from worldmove.transport.peer import Card, Peer

T = TypeVar("T")


class Counting(DoubleKit):
    """Counts what is mapped and pinned by now."""

    def __init__(self) -> None:
        super().__init__()
        self.num_mapped = self.num_pinned = 0

    def open(self, handle: bytes, num_bytes: int) -> DeviceMemory:
        memory = super().open(handle, num_bytes)
        self.num_mapped += 1

        def release() -> None:
            self.num_mapped -= 1

        return DeviceMemory(address=memory.address, num_bytes=num_bytes, release=release, owner=memory.owner)

    def pin(self, part: Part) -> Callable[[], None]:
        self.num_pinned += 1

        def unpin() -> None:
            self.num_pinned -= 1

        return unpin


class Cards(Loopback):
    """Lends a page of another's; ``stalls``: the other end does not answer that."""

    stalls = True

    async def lend(self, memory: object) -> bytes:
        self.gate = memory
        return b"gate"

    async def borrow(self, ticket: bytes) -> int:
        if self.stalls:
            await asyncio.Event().wait()
        return self.gate.fd  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("at", ["map", "gate's owner", "gate"])
def test_who_is_cancelled_while_it_connects_leaves_nothing_mapped_or_pinned(at: str) -> None:
    async def main() -> None:
        connecting: list[asyncio.Task[object]] = []

        async def cancelled_at(function: Callable[[], T], /) -> T:
            before = kit.num_mapped + kit.num_pinned
            found = function()
            if connecting and kit.num_mapped + kit.num_pinned > before and at == ("map" if not before else "gate"):
                raise asyncio.CancelledError
            return found

        kit = Counting()
        cards = Cards(blocking=inline, tokens=lambda: bytes(32))
        cards.stalls = at == "gate's owner"
        peer = Peer(kit=kit, cards=cards, blocking=cancelled_at)
        arena = DeviceArena(1 << 16, "source", kit)
        ticket = await peer.export_device(arena)
        own = kit.num_pinned
        kit.num_pinned = 0
        connecting.append(asyncio.create_task(peer.connect(ticket)))
        await asyncio.sleep(0.01)
        connecting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting[0]
        assert (own, kit.num_mapped, kit.num_pinned) == (1, 0, 0)

    asyncio.run(main())


@pytest.mark.parametrize("more", [1, 1 << 16, 1 << 40])
def test_a_card_that_says_more_than_the_memory_has_is_refused_before_a_byte_is_read(more: int) -> None:
    async def main() -> None:
        kit = Counting()
        peer = Peer(kit=kit, cards=Loopback(blocking=inline, tokens=lambda: bytes(32)), blocking=inline)
        ticket = await peer.export_device(DeviceArena(1 << 16, "source", kit))
        page = peer._exports[ticket][0].buffer
        card = msgspec.msgpack.decode(bytes(page[2 : 2 + int.from_bytes(page[:2], "little")]), type=Card)
        said = msgspec.msgpack.encode(msgspec.structs.replace(card, size=card.size + more))
        page[: len(said) + 2] = len(said).to_bytes(2, "little") + said
        with pytest.raises(TransportError, match=f"has {card.size} bytes, not {card.size + more}"):
            await peer.connect(ticket)
        assert kit.num_mapped == 0

    asyncio.run(main())
