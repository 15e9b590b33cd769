"""What every path between slots must do. Each test takes a ``Bench``; ``test_transports`` builds one for each path."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.transport.exporter import pattern
from worldmove.errors import TransportError
from worldmove.limits import MAX_TICKET_BYTES
from worldmove.move.window import WriteWindow
from worldmove.state.arena import Arena
from worldmove.state.device_window import joined
from worldmove.state.extent import Extent
from worldmove.transport.base import Transport

SIZE = 256 << 10
POISON = 0xAA


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A destination's transport, and a source's arena that holds ``pattern(SIZE)``."""

    transport: Transport
    export: Callable[[], Awaitable[bytes]]
    withdraw: Callable[[], Awaitable[None]]
    """End the export made last."""
    write: Callable[[int, bytes], Awaitable[None]]
    """Write into the source's arena, at the source."""
    joins: bool = False
    """Whether short gaps between runs come with them, as they do between slots of a device."""

    def require(self, arrived: memoryview, extents: Sequence[Extent]) -> None:
        """See that a poisoned arena has these, and nothing else but what may come with them."""
        least, most = filled(extents), filled(joined(extents) if self.joins else extents)
        assert all(byte in pair for byte, *pair in zip(arrived, least, most, strict=True))


def filled(extents: Sequence[Extent]) -> bytes:
    arena = bytearray([POISON]) * SIZE
    for run in extents:
        arena[run.offset : run.end] = pattern(SIZE)[run.offset : run.end]
    return bytes(arena)


def extent(offset: int, length: int) -> Extent:
    return Extent(offset=offset, length=length)


def target() -> Arena:
    arena = Arena(SIZE, "target")
    arena.buffer[:] = bytes([POISON]) * arena.size
    return arena


async def brings_every_extent_and_nothing_else(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    extents = [extent(0, 1), extent(4097, 3), extent(8192, 70_000), extent(SIZE - 5, 5)]
    await channel.pull(extents, into.buffer)
    bench.require(into.buffer, extents)
    await channel.close()


async def brings_everything_in_one_pull(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    await channel.pull([extent(0, SIZE)], into.buffer)
    assert bytes(into.buffer) == pattern(SIZE)
    await channel.close()


async def brings_what_is_there_when_it_pulls(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    await bench.write(1000, b"written after the channel was made")
    await channel.pull([extent(1000, 34)], into.buffer)
    assert bytes(into.buffer[1000:1034]) == b"written after the channel was made"
    await channel.close()


async def brings_nothing_for_no_extents(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    await channel.pull([], into.buffer)
    assert set(bytes(into.buffer)) == {POISON}
    await channel.close()


async def refuses_what_is_outside_and_writes_nothing(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    for outside in (extent(SIZE - 4, 5), extent(SIZE, 1), extent(-1, 2)):
        with pytest.raises(TransportError):
            await channel.pull([outside], into.buffer)
    with pytest.raises(TransportError):
        await channel.pull([extent(0, 4096)], into.buffer[:4095])
    assert set(bytes(into.buffer)) == {POISON}
    await channel.close()


async def lets_two_channels_pull_by_one_ticket(bench: Bench) -> None:
    ticket = await bench.export()
    channels = [await bench.transport.connect(ticket) for _ in range(2)]
    for channel in channels:
        into = target()
        await channel.pull([extent(10, 100)], into.buffer)
        assert bytes(into.buffer[10:110]) == pattern(SIZE)[10:110]
        await channel.close()


async def refuses_an_unknown_ticket(bench: Bench) -> None:
    ticket = await bench.export()
    for wrong in (b"", b"no ticket", ticket[:-1], bytes(len(ticket)), b"x" * (MAX_TICKET_BYTES + 1)):
        with pytest.raises(TransportError):
            await bench.transport.connect(wrong)


async def refuses_a_ticket_withdrawn_but_lets_a_channel_go_on(bench: Bench) -> None:
    ticket = await bench.export()
    channel = await bench.transport.connect(ticket)
    await bench.withdraw()
    with pytest.raises(TransportError):
        await bench.transport.connect(ticket)
    into = target()
    await channel.pull([extent(0, 64)], into.buffer)
    assert bytes(into.buffer[:64]) == pattern(SIZE)[:64]
    await channel.close()


async def withdraws_twice(bench: Bench) -> None:
    await bench.export()
    await bench.withdraw()
    await bench.withdraw()


async def gives_small_tickets_that_differ(bench: Bench) -> None:
    tickets = [await bench.export() for _ in range(3)]
    assert len({*tickets}) == 3
    assert max(map(len, tickets)) <= MAX_TICKET_BYTES


async def pulls_nothing_once_closed(bench: Bench) -> None:
    channel = await bench.transport.connect(await bench.export())
    await channel.close()
    await channel.close()
    with pytest.raises(TransportError):
        await channel.pull([extent(0, 1)], target().buffer)


async def writes_nothing_after_a_cancelled_pull(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    pull = asyncio.create_task(channel.pull([extent(0, SIZE)] * 40, into.buffer))
    await asyncio.sleep(0.001)
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)
    into.buffer[:] = bytes([POISON]) * into.size
    await asyncio.sleep(0.02)
    assert set(bytes(into.buffer)) == {POISON}
    await channel.close()


async def keeps_nothing_of_what_it_was_lent(bench: Bench) -> None:
    """A part of a view outlives the release of the view: a path that keeps one could write to a session played."""
    channel = await bench.transport.connect(await bench.export())
    window = WriteWindow(target())
    await channel.pull([extent(0, 1), extent(4097, 3), extent(8192, 70_000)], window.view)
    window.close()
    await channel.close()


async def pulls_what_is_scattered_over_hundreds_of_extents(bench: Bench) -> None:
    into = target()
    channel = await bench.transport.connect(await bench.export())
    extents = [extent(offset, 1 + offset % 3) for offset in range(0, SIZE - 4, 1023)]
    await channel.pull(extents, into.buffer)
    bench.require(into.buffer, extents)
    await channel.close()


SUITE = (
    brings_every_extent_and_nothing_else,
    brings_everything_in_one_pull,
    brings_what_is_there_when_it_pulls,
    brings_nothing_for_no_extents,
    refuses_what_is_outside_and_writes_nothing,
    lets_two_channels_pull_by_one_ticket,
    refuses_an_unknown_ticket,
    refuses_a_ticket_withdrawn_but_lets_a_channel_go_on,
    withdraws_twice,
    gives_small_tickets_that_differ,
    pulls_nothing_once_closed,
    writes_nothing_after_a_cancelled_pull,
    keeps_nothing_of_what_it_was_lent,
    pulls_what_is_scattered_over_hundreds_of_extents,
)
