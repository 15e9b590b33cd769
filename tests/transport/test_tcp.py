"""TCP: what a source sends to whom, what a destination takes from whom, and what is left behind."""

import asyncio
import errno
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import msgspec
import pytest

from tests.transport.conformance import POISON, SIZE, extent, target
from tests.transport.exporter import pattern
from tests.transport.test_transports import Tokens
from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.transport import tcp_serving
from worldmove.transport.base import Channel
from worldmove.transport.descriptors import fetch
from worldmove.transport.tcp import Tcp, TcpConfig, TcpTicket
from worldmove.transport.tcp_words import HELLO_BYTES, MAX_RUNS, hello, number, requests

STALL_S = 0.2


@asynccontextmanager
async def tcp(stall_s: float = 2.0) -> AsyncIterator[Tcp]:
    path = Tcp(config=TcpConfig(stall_s=stall_s), tokens=Tokens(0))
    await path.start()
    try:
        yield path
    finally:
        await path.close()


def source() -> Arena:
    arena = Arena(SIZE, "source")
    arena.buffer[:] = pattern(SIZE)
    return arena


def read(ticket: bytes) -> TcpTicket:
    return msgspec.msgpack.decode(ticket, type=TcpTicket)


def tell(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20.0):
            await story()

    asyncio.run(limited())


# the source's end


async def answered(path: Tcp, words: bytes) -> bytes:
    """All that a source says to somebody who says this and then waits for the end."""
    ticket = read(await path.export(source()))
    reader, writer = await asyncio.open_connection(ticket.host, ticket.port)
    writer.write(words.replace(b"TOKEN", ticket.token))
    said = b""
    with suppress(ConnectionError):  # it left words of ours unread: an end all the same
        said = await reader.read()
    writer.close()
    return said


GREETING = hello(bytes(32))[:-32] + b"TOKEN"
WELCOME = number(SIZE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (hello(bytes([7]) * 32), b""),
        (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" + bytes(HELLO_BYTES), b""),
        (b"WMTCP\x00\x02\n" + GREETING[8:], b""),
        (hello(bytes(32))[:20], b""),
        (GREETING + number(0), WELCOME),
        (GREETING + number(MAX_RUNS + 1), WELCOME),
        (GREETING + number((1 << 64) - 1), WELCOME),
        (GREETING + number(1) + struct.pack("!QQ", SIZE - 4, 5), WELCOME),
        (GREETING + number(1) + struct.pack("!QQ", SIZE, 1), WELCOME),
        (GREETING + number(1) + struct.pack("!QQ", (1 << 64) - 8, 16), WELCOME),
        (GREETING + number(1) + struct.pack("!QQ", 16, 0), WELCOME),
        (GREETING + number(2) + struct.pack("!QQQQ", 0, 4, SIZE, 4), WELCOME),
        (GREETING + number(1) + struct.pack("!Q", 0), WELCOME),
    ],
    ids=lambda value: f"{len(value)} bytes",
)
def test_who_says_what_nobody_should_hears_an_end_and_gets_no_byte(words: bytes, said: bytes) -> None:
    async def story() -> None:
        async with tcp(STALL_S) as path:
            assert await answered(path, words) == said
            into = target()
            channel = await path.connect(await path.export(source()))
            await channel.pull([extent(0, SIZE)], into.buffer)  # nobody else is the worse for it
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()

    tell(story)


class Unreadable:
    """A slot of a device that has failed."""

    size = SIZE

    def read(self, offset: int, length: int) -> Any:
        raise RuntimeError("out of pinned memory")


def test_a_slot_that_cannot_be_read_is_an_end_for_who_asked_and_nobody_else_is_the_worse_for_it() -> None:
    async def blocking(function: Callable[[], Any]) -> Any:
        return function()

    async def story() -> None:
        path = Tcp(config=TcpConfig(stall_s=STALL_S), tokens=Tokens(0), blocking=blocking)
        await path.start()
        other = await path.connect(await path.export(source()))
        channel = await path.connect(await path.export_device(Unreadable()))  # type: ignore[arg-type]
        with pytest.raises(TransportError):
            await channel.pull([extent(0, SIZE)], target().buffer)
        into = target()
        await other.pull([extent(0, SIZE)], into.buffer)
        assert bytes(into.buffer) == pattern(SIZE)
        await (await path.connect(await path.export(source()))).close()
        await other.close()
        await path.close()

    tell(story)


def test_who_says_nothing_holds_up_nobody_and_is_let_go() -> None:
    async def story() -> None:
        async with tcp(STALL_S) as path:
            ticket = await path.export(source())
            address = (read(ticket).host, read(ticket).port)
            silent = [await asyncio.open_connection(*address) for _ in range(20)]
            await (await path.connect(ticket)).close()
            for reader, writer in silent:
                assert await reader.read() == b""
                writer.close()

    tell(story)


async def connected_at_last(path: Tcp, ticket: bytes) -> Channel:
    """Connect as soon as the source has noticed who has left."""
    while True:
        with suppress(TransportError):
            return await path.connect(ticket)


def test_more_connections_than_there_can_be_channels_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_serving, "MAX_CONNECTIONS", 3)

    async def story() -> None:
        async with tcp(STALL_S) as path:
            ticket = await path.export(source())
            channels = [await path.connect(ticket) for _ in range(3)]
            with pytest.raises(TransportError):
                await path.connect(ticket)
            for channel in channels:
                await channel.close()
            await (await connected_at_last(path, ticket)).close()

    tell(story)


def test_who_only_connects_takes_no_place_from_who_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent ones come again as they are cut; so do such as say a token that stands for nothing."""
    monkeypatch.setattr(tcp_serving, "MAX_CONNECTIONS", 4)

    async def come_again(address: tuple[str, int], words: bytes) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*address)
                with closing(writer):
                    writer.write(words)
                    await reader.read()

    async def story() -> None:
        async with tcp() as path:
            ticket = await path.export(source())
            address = (read(ticket).host, read(ticket).port)
            played = await path.connect(ticket)
            strangers = [asyncio.create_task(come_again(address, words)) for words in (b"", hello(bytes(32))) * 8]
            await asyncio.sleep(STALL_S)
            for _ in range(5):
                async with asyncio.timeout(1.0):
                    await (await path.connect(ticket)).close()
            into = target()
            await played.pull([extent(0, SIZE)], into.buffer)
            assert bytes(into.buffer) == pattern(SIZE), "who was known is not cut"
            await played.close()
            for stranger in strangers:
                stranger.cancel()
            await asyncio.gather(*strangers, return_exceptions=True)

    tell(story)


def test_an_asker_that_takes_nothing_is_let_go() -> None:
    async def story() -> None:
        async with tcp(STALL_S) as path:
            arena = Arena(32 << 20, "large")
            ticket = read(await path.export(arena))
            reader, writer = await asyncio.open_connection(ticket.host, ticket.port, limit=1 << 10)
            writer.write(hello(ticket.token) + next(requests([extent(0, arena.size)]))[0])
            await asyncio.sleep(4 * STALL_S)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(8 + 8 + arena.size)
            writer.close()

    tell(story)


def test_a_source_that_closes_ends_its_connections() -> None:
    async def story() -> None:
        async with tcp() as path:
            channel = await path.connect(await path.export(source()))
        into = target()
        with pytest.raises(TransportError, match=r"closed the connection|broke"):
            await channel.pull([extent(0, 64)], into.buffer)
        assert set(bytes(into.buffer)) == {POISON}
        await channel.close()

    tell(story)


# the destination's end


@asynccontextmanager
async def liar(*answers: bytes, then_close: bool = True) -> AsyncIterator[bytes]:
    """A source that says these words, one for each time that it is spoken to; yields a ticket for it."""

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(1 << 16)
            writer.write(answer)
        if not then_close:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(lie, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield msgspec.msgpack.encode(TcpTicket("127.0.0.1", port, bytes(32), SIZE))


async def pulled_from(ticket: bytes, path: Tcp) -> bytes:
    """What is in the destination's memory after a pull of the first 1,000 bytes that failed."""
    into = target()

    async def pull() -> None:
        channel = await path.connect(ticket)
        try:
            await channel.pull([extent(0, 1000)], into.buffer)
        finally:
            await channel.close()

    with pytest.raises(TransportError):
        await pull()
    return bytes(into.buffer)


@pytest.mark.parametrize(
    ("answers", "num_written"),
    [
        ((b"",), 0),
        ((number(SIZE + 1),), 0),
        ((number(SIZE - 1), b""), 0),
        ((WELCOME, b""), 0),
        ((WELCOME, number(999) + bytes(999)), 0),
        ((WELCOME, number(1001) + bytes(1001)), 0),
        ((WELCOME, number((1 << 64) - 1) + bytes(1000)), 0),
        ((WELCOME, number(1000) + bytes(400)), 400),
    ],
    ids=range(8),
)
def test_a_source_that_says_what_was_not_asked_for_is_not_believed(
    answers: tuple[bytes, ...], num_written: int
) -> None:
    async def story() -> None:
        async with tcp(STALL_S) as path, liar(*answers) as ticket:
            arrived = await pulled_from(ticket, path)
            assert arrived[:num_written] == bytes(num_written)
            assert set(arrived[num_written:]) == {POISON}

    tell(story)


@pytest.mark.parametrize("answers", [(), (WELCOME,), (WELCOME, number(1000) + bytes(400))], ids=range(3))
def test_a_source_that_falls_silent_is_given_up(answers: tuple[bytes, ...]) -> None:
    async def story() -> None:
        async with tcp(STALL_S) as path, liar(*answers, b"", then_close=False) as ticket:
            async with asyncio.timeout(10 * STALL_S):
                await pulled_from(ticket, path)

    tell(story)


def test_bytes_beyond_those_asked_for_are_no_beginning_of_the_next_pull() -> None:
    async def story() -> None:
        lies = (WELCOME, number(1000) + bytes(1000) + number(7) + b"UNASKED", b"")
        async with tcp(STALL_S) as path, liar(*lies) as ticket:
            into = target()
            channel = await path.connect(ticket)
            await channel.pull([extent(0, 1000)], into.buffer)
            with pytest.raises(TransportError, match="announces 7 bytes"):
                await channel.pull([extent(2000, 8)], into.buffer)
            assert set(bytes(into.buffer[1000:])) == {POISON}
            await channel.close()

    tell(story)


def test_a_pull_that_was_cut_short_is_the_channels_last() -> None:
    async def story() -> None:
        async with tcp() as path:
            arena = Arena(64 << 20, "large")
            into = Arena(64 << 20, "target")
            channel = await path.connect(await path.export(arena))
            pull = asyncio.create_task(channel.pull([extent(0, arena.size)], into.buffer))
            await asyncio.sleep(0.002)
            pull.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pull
            with pytest.raises(TransportError, match="closed"):
                await channel.pull([extent(0, 8)], into.buffer)
            await channel.close()

    tell(story)


def test_thousands_of_extents_come_in_as_many_requests_as_it_takes() -> None:
    async def story() -> None:
        async with tcp() as path:
            into = target()
            extents = [extent(offset, offset % 3) for offset in range(0, SIZE - 4, 25)]
            assert len([run for run in extents if run.length]) > MAX_RUNS
            channel = await path.connect(await path.export(source()))
            await channel.pull(extents, into.buffer)
            expected = bytearray([POISON]) * into.size
            for run in extents:
                expected[run.offset : run.end] = pattern(SIZE)[run.offset : run.end]
            assert bytes(into.buffer) == bytes(expected)
            await channel.close()

    tell(story)


def test_two_pulls_at_once_take_turns() -> None:
    async def story() -> None:
        async with tcp() as path:
            into = target()
            channel = await path.connect(await path.export(source()))
            half = SIZE // 2
            await asyncio.gather(*(channel.pull([extent(at, half)], into.buffer) for at in (0, half)))
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()

    tell(story)


def test_nobody_at_the_address_is_an_error_of_the_path() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ticket = msgspec.msgpack.encode(TcpTicket("127.0.0.1", taken.getsockname()[1], bytes(32), SIZE))

        async def story() -> None:
            async with tcp() as path:
                with pytest.raises(TransportError, match=r"no answer at 127\.0\.0\.1"):
                    await path.connect(ticket)

        tell(story)


def test_a_process_without_a_descriptor_left_cannot_connect_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything else that is raised would end the worker, with all the worlds that it plays."""

    def full(*_arguments: Any) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    async def story() -> None:
        async with tcp() as path:
            ticket = await path.export(source())
            with monkeypatch.context() as patch:
                patch.setattr(socket, "socket", full)
                with pytest.raises(TransportError, match="Too many open files"):
                    await path.connect(ticket)
                with pytest.raises(TransportError, match="Too many open files"):
                    await fetch("/none", bytes(32), 1.0)

    tell(story)


@pytest.mark.parametrize("host", ["localhost", "example.org", "127.0.0.1/8", "", "::1%lo;x"])
def test_a_ticket_that_names_no_numeric_address_is_refused(host: str) -> None:
    async def story() -> None:
        async with tcp() as path:
            with pytest.raises(TransportError):
                await path.connect(msgspec.msgpack.encode(TcpTicket(host, 80, bytes(32), SIZE)))

    tell(story)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "localhost", ""])
def test_a_ticket_could_not_name_an_address_that_is_none(host: str) -> None:
    with pytest.raises(TransportError):
        TcpConfig(host=host)


def test_an_address_that_is_not_ours_cannot_be_listened_at() -> None:
    async def story() -> None:
        with pytest.raises(TransportError, match="cannot be listened at"):
            await Tcp(config=TcpConfig(host="192.0.2.1"), tokens=Tokens(0)).start()

    tell(story)


def test_it_works_over_the_newer_internet_protocol_too() -> None:
    async def story() -> None:
        path = Tcp(config=TcpConfig(host="::1"), tokens=Tokens(0))
        try:
            await path.start()
        except TransportError:
            pytest.skip("this machine has no such address")
        into = target()
        channel = await path.connect(await path.export(source()))
        await channel.pull([extent(0, SIZE)], into.buffer)
        assert bytes(into.buffer) == pattern(SIZE)
        await channel.close()
        await path.close()

    tell(story)


def test_nothing_is_exported_before_the_start_or_after_the_end() -> None:
    async def story() -> None:
        async with tcp() as path:
            pass
        with pytest.raises(TransportError, match="not started, or is closed"):
            await path.export(source())

    tell(story)


def test_neither_end_leaves_a_descriptor_behind() -> None:
    async def story() -> None:
        into, arena = target(), source()
        before = len(os.listdir("/proc/self/fd"))
        async with tcp() as path:
            ticket = await path.export(arena)
            channels = [await path.connect(ticket) for _ in range(5)]
            for channel in channels[:3]:
                await channel.pull([extent(0, 4096)], into.buffer)
                await channel.close()
        for channel in channels[3:]:
            with pytest.raises(TransportError):
                await channel.pull([extent(0, 4096)], into.buffer)
            await channel.close()
        assert len(os.listdir("/proc/self/fd")) == before

    tell(story)


def test_small_requests_are_not_held_back() -> None:
    """Without TCP_NODELAY, a second small packet waits for the other end's delayed acknowledgement: 40 ms each."""

    async def story() -> None:
        async with tcp() as path:
            into = target()
            channel = await path.connect(await path.export(source()))
            begun = asyncio.get_running_loop().time()
            for at in range(200):
                await channel.pull([extent(at, 1)], into.buffer)
            assert asyncio.get_running_loop().time() - begun < 2.0
            await channel.close()

    tell(story)
