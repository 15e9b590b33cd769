"""Clients that flood, stall, half-open or vanish, at real sockets: each harms only itself."""

import asyncio
import json
import logging
import os
import resource
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.serve.test_app import Site, message, on_site
from worldmove.serve.allowance import Pace
from worldmove.serve.limits import HttpLimits, PlayLimits
from worldmove.serve.player import CloseCode

FEW = Pace(burst=20, per_s=20)
QUICK = HttpLimits(request_s=1.5, control_frames=FEW)
QUIET = HttpLimits(max_connections=12, quiet_s=0.5)
MASK = b"\1\2\3\4"
PING, TEXT, CONT = 9, 1, 0


def frame(kind: int, body: bytes = b"", *, fin: bool = True) -> bytes:
    """One masked frame of a client's, of less than 64 KiB."""
    length = bytes([0x80 | len(body)]) if len(body) < 126 else b"\xfe" + struct.pack(">H", len(body))
    return bytes([0x80 * fin | kind]) + length + MASK + bytes(b ^ MASK[i % 4] for i, b in enumerate(body))


@asynccontextmanager
async def raw(site: Site) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = site.url.removeprefix("http://").split(":")
    joined = socket.socket()
    joined.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    joined.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=joined, limit=1 << 16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def upgrade(site: Site, session: str, *more: str) -> bytes:
    lines = (
        f"GET /api/sessions/{session}/play HTTP/1.1",
        f"Host: {site.url.removeprefix('http://')}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *more,
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@asynccontextmanager
async def raw_play(site: Site, session: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with raw(site) as (reader, writer):
        writer.write(upgrade(site, session))
        assert b"101" in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer


@asynccontextmanager
async def unharmed(site: Site) -> AsyncIterator[None]:
    """Another player's world goes on meanwhile: never a second without a frame, twenty times a block's period."""
    late_s = [0.0]
    loop = asyncio.get_running_loop()

    async def play(socket: ClientConnection) -> None:
        await socket.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
        last = loop.time()
        while True:
            if isinstance(await socket.recv(), bytes):
                late_s[0] = max(late_s[0], loop.time() - last)
                last = loop.time()

    async with site.play(await site.open()) as socket:
        await message(socket, "hello")
        playing = asyncio.create_task(play(socket))
        yield
        await asyncio.sleep(0.6)
        assert not playing.done()
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
    assert 0.0 < late_s[0] < 1.0


async def ended(reader: asyncio.StreamReader, within_s: float = 5.0) -> bytes:
    """What comes until the other end closes."""
    found = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(within_s):
            while data := await reader.read(1 << 16):
                found = (found + data)[-4096:]
    return found


async def code_of(socket: ClientConnection) -> int | None:
    async with asyncio.timeout(5):
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()
    return socket.close_code


async def until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def answered(site: Site, within_s: float = 30.0) -> None:
    """Return once a request is answered: the server learns in its own time that somebody has left."""
    async with asyncio.timeout(within_s):
        while True:
            with suppress(httpx.TransportError):
                assert (await site.http.get("/healthz")).status_code == 200
                return


def test_one_who_floods_with_messages_is_closed_and_the_others_play_on() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with unharmed(site), site.play(session) as flooding:
            with suppress(ConnectionClosed):
                for number in range(5_000):
                    await flooding.send(json.dumps({"type": "ping", "t": number}))
                    await asyncio.sleep(0)  # the flood and the server share this test's one loop
            assert await code_of(flooding) == CloseCode.TOO_MANY
        assert (await site.http.get(f"/api/sessions/{session}")).json()["num_watchers"] == 0

    on_site(work)


def test_one_who_floods_with_key_changes_is_closed_and_its_log_stays_small() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with unharmed(site), site.play(session) as flooding:
            with suppress(ConnectionClosed):
                for first in range(1, 64 * 64, 64):
                    changes = [[first + index, "up", index % 2 == 0] for index in range(64)]
                    await flooding.send(json.dumps({"type": "keys", "changes": changes}))
            assert await code_of(flooding) == CloseCode.TOO_MANY
        log = site.gateway.live(session).sequencer
        assert sum(len(log.closed(block)) for block in range(log.reaches)) <= 200

    on_site(work, play=PlayLimits(key_changes=Pace(burst=128, per_s=10)))


def test_one_who_never_reads_is_dropped_and_leaves_nothing_behind() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with unharmed(site), raw_play(site, session) as (_, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            with suppress(ConnectionError):
                for _ in range(400):
                    writer.write(frame(TEXT, b'{"type":"ping","t":1}') * 50)
                    await asyncio.sleep(0)
                    async with asyncio.timeout(5):
                        await writer.drain()
            async with asyncio.timeout(5):
                await site.gateway.live(session).audience.emptied()

    on_site(work, http=QUICK, play=PlayLimits(messages=Pace(burst=1e9, per_s=1e9)))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("flood", [frame(PING, b"x" * 125), frame(CONT, fin=False)], ids=["pings", "fragments"])
def test_one_who_floods_with_frames_that_are_no_messages_is_ended_and_takes_no_memory(flood: bytes) -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with unharmed(site), raw_play(site, session) as (reader, writer):
            before = resident()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(frame(TEXT, b"{", fin=False))
            with suppress(ConnectionError, TimeoutError):
                for _ in range(400):
                    writer.write(flood * 500)
                    async with asyncio.timeout(2):
                        await writer.drain()
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            await ended(reader)
            assert resident() - before < 16 << 20
        assert 'limit="control_frames"} 1.0' in (await site.http.get("/metrics")).text

    on_site(work, http=QUICK)


def test_one_who_reads_nothing_for_a_moment_and_asks_whether_the_server_is_there_is_answered_and_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As any library's client does, every twenty seconds, behind a line that is slow just then."""
    real, taken = WebSocketsSansIOProtocol.connection_made, list[WebSocketsSansIOProtocol]()

    def made(self: WebSocketsSansIOProtocol, transport: asyncio.Transport) -> None:
        real(self, transport)
        taken.append(self)

    async def work(site: Site) -> None:
        session = await site.open()
        monkeypatch.setattr(WebSocketsSansIOProtocol, "connection_made", made)
        async with raw_play(site, session) as (reader, writer):
            (server,) = taken
            server.pause_writing()  # as its transport says it where more waits than it takes
            writer.write(frame(PING, b"still there?"))
            await asyncio.sleep(0.1)
            assert not server.transport.is_closing()
            server.resume_writing()
            async with asyncio.timeout(5):
                await reader.readuntil(b"\x8a\x0cstill there?")

    on_site(work)


HALVES = {
    "nothing": b"",
    "half a line": b"GET /healthz HT",
    "half a head": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ",
    "half a body": b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
    "half a chunk": b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{",
    "a second half": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
}


def test_a_request_that_never_ends_is_ended_with_its_own_error() -> None:
    async def half(site: Site, said: bytes) -> bytes:
        async with raw(site) as (reader, writer):
            writer.write(said)
            return await ended(reader)

    async def work(site: Site) -> None:
        async with unharmed(site):
            answers = await asyncio.gather(*(half(site, said) for said in HALVES.values()))
        for name, answer in zip(HALVES, answers, strict=True):
            last = answer.rpartition(b"HTTP/1.1 ")[2]
            assert last.startswith(b"408"), (name, answer)
            assert json.loads(last.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"

    on_site(work, http=QUICK)


def test_a_long_body_is_read_for_as_long_as_much_of_it_comes() -> None:
    """A saved world of some GB takes longer than any short request may."""

    async def sent(site: Site, bytes_at_a_time: int) -> tuple[int, bytes]:
        async with raw(site) as (reader, writer):
            size = 40 * bytes_at_a_time
            head = (
                "POST /api/sessions/restore HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
            )
            writer.write(f"{head}Content-Length: {size}\r\n\r\n".encode())
            for number in range(40):
                writer.write(bytes(bytes_at_a_time))
                await asyncio.sleep(0.1)
                if reader.at_eof() or writer.is_closing():
                    return number, await ended(reader)
            return 40, await ended(reader)

    async def work(site: Site) -> None:
        async with unharmed(site):
            (cut_after, _), (num_sent, answer) = await asyncio.gather(sent(site, 100), sent(site, 4000))
        assert cut_after < 40
        assert num_sent == 40
        assert b'"bad_file"' in answer  # read to its end, and no saved world

    on_site(work, http=replace(QUICK, least_bytes_per_s=10_000.0))


def test_connections_beyond_the_limit_are_closed_unread_and_those_inside_go_on() -> None:
    async def work(site: Site) -> None:
        async with unharmed(site):
            opened = [await asyncio.open_connection(*site.url.removeprefix("http://").split(":")) for _ in range(40)]
            waiting = [asyncio.create_task(ended(reader, within_s=60.0)) for reader, _ in opened]
            await until(lambda: sum(task.done() for task in waiting) >= 40 - 16)
            assert all(task.result() == b"" for task in waiting if task.done())
            for _, writer in opened:
                writer.transport.abort()
            await asyncio.gather(*waiting)
        await answered(site)

    on_site(work, http=HttpLimits(max_connections=16))


def test_who_stays_and_says_nothing_locks_nobody_out_and_costs_nobody_who_speaks_a_place() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        ask = f"GET /api/sessions/{session}/record?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        async with AsyncExitStack() as stack:
            for _ in range(6):
                _, writer = await stack.enter_async_context(raw(site))
                writer.write(ask)
            for _ in range(5):
                await stack.enter_async_context(raw_play(site, session))
            await asyncio.sleep(1.2 * QUIET.quiet_s)
            async with site.play(session, "?watch=true") as speaking:
                for number in range(12):
                    await speaking.send(json.dumps({"type": "ping", "t": number}))
                    async with raw_play(site, session), raw(site) as (reader, writer):
                        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        assert b"200 OK" in await ended(reader)
                    await asyncio.sleep(QUIET.quiet_s / 5)
                assert (await message(speaking, "pong"))["t"] == 0

    on_site(work, http=QUIET)


def test_a_flood_of_those_who_only_come_takes_the_places_of_one_another_and_nobody_elses_answer() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        ask = f"GET /api/sessions/{session}/record?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        async with raw(site) as (follower, asking), AsyncExitStack() as stack:
            asking.write(ask)
            assert b"200 OK" in await follower.readuntil(b"\r\n\r\n")
            for number in range(40):
                await stack.enter_async_context(raw(site))
                await asyncio.sleep(QUIET.quiet_s / 20)
                if number % 10 == 9:
                    async with raw(site) as (reader, writer):
                        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        assert b"200 OK" in await ended(reader)
            async with site.play(session):
                assert await follower.read(1 << 16)  # what is played afterwards still comes

    on_site(work, http=QUIET)


def test_new_connections_come_no_faster_than_announced() -> None:
    async def work(site: Site) -> None:
        refused = 0
        for _ in range(30):
            async with raw(site) as (reader, writer):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                refused += await ended(reader) == b""
        assert 10 <= refused < 30

    on_site(work, http=HttpLimits(new_connections=Pace(burst=10, per_s=0.1)))


def test_requests_on_one_connection_wait_for_their_turn_and_all_are_answered() -> None:
    async def work(site: Site) -> None:
        loop = asyncio.get_running_loop()
        async with unharmed(site), raw(site) as (reader, writer):
            begun = loop.time()
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 30)
            for _ in range(30):
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
                await reader.readuntil(b"}")
            assert loop.time() - begun >= 0.4

    on_site(work, http=HttpLimits(requests=FEW))


def test_what_is_too_long_is_refused_by_its_own_code() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with raw(site) as (reader, writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000)
            assert b"HTTP/1.1 4" in await ended(reader)
        async with raw(site) as (reader, writer):
            writer.write(upgrade(site, session, *(f"X-{number}: 1" for number in range(200))))
            assert b"HTTP/1.1 4" in await ended(reader)
        async with site.play(session) as socket:
            await socket.send("x" * ((64 << 10) + 1))
            assert await code_of(socket) == 1009
        assert (await site.http.get("/healthz")).status_code == 200

    on_site(work)


def test_one_who_leaves_in_the_middle_of_an_upload_is_no_fault_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async def work(site: Site) -> None:
        async with raw(site) as (_, writer):
            head = "POST /api/sessions/restore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nWMSS"
            writer.write(head.encode())
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        assert (await site.http.get("/healthz")).status_code == 200
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    on_site(work)


def test_who_stays_to_watch_locks_nobody_out_and_does_not_push_out_who_controls() -> None:
    async def work(site: Site) -> None:
        session = await site.open()
        async with site.play(session) as playing, site.play(session, "?watch=true") as oldest:
            await message(playing, "hello")
            await message(oldest, "hello")
            async with site.play(session, "?watch=true") as second, site.play(session, "?watch=true") as third:
                await message(third, "hello")
                assert await code_of(oldest) == CloseCode.TOO_MANY
                await playing.send(json.dumps({"type": "keys", "changes": [[1, "up", True]]}))
                assert (await message(playing, "keys"))["number"] == 1
                assert (await message(second, "hello"))["controls"] is False

    on_site(work, play=PlayLimits(max_watchers=3))


def test_any_bytes_at_the_port_leave_the_server_as_it_was() -> None:
    beginnings = (b"", b"GET ", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"POST /api/sessions HTTP/1.1\r\n")

    async def noise(site: Site, said: bytes) -> None:
        async with raw(site) as (reader, writer):
            writer.write(said)
            writer.write_eof()
            await ended(reader, 2)

    async def frames(site: Site, session: str, said: bytes) -> None:
        async with raw_play(site, session) as (reader, writer):
            writer.write(said)
            with suppress(TimeoutError):
                await ended(reader, 0.3)

    async def work(site: Site) -> None:
        session = await site.open()
        failed: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        async with unharmed(site):
            for round_ in range(12):
                await asyncio.gather(*(noise(site, start + os.urandom(round_ * 40)) for start in beginnings))
                await frames(site, session, os.urandom(1 + round_ * 20))
        assert failed == []

    on_site(work, http=QUICK)


@asynccontextmanager
async def in_short_pieces(longest_s: float) -> AsyncIterator[None]:
    """The loop does nothing in one piece that takes longer."""
    loop = asyncio.get_running_loop()
    longest, last, is_over = 0.0, loop.time(), False

    def look() -> None:
        nonlocal longest, last
        longest, last = max(longest, loop.time() - last), loop.time()
        if not is_over:
            loop.call_soon(look)

    loop.call_soon(look)
    yield
    is_over = True
    assert 0.0 < longest < longest_s


def test_many_who_ask_again_and_again_take_a_share_of_the_loop_and_hold_up_nobody_else() -> None:
    num_answered = 0

    async def ask(site: Site, request: bytes) -> None:
        nonlocal num_answered
        async with raw(site) as (reader, writer):
            while True:
                writer.write(request)
                await reader.readuntil(b"\r\n\r\n")
                num_answered += 1

    async def work(site: Site) -> None:
        session = await site.open()
        request = f"HEAD /api/sessions/{session} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        async with unharmed(site):
            floods = [asyncio.create_task(ask(site, request)) for _ in range(60)]
            await asyncio.sleep(1.5)  # each has had an answer
            for _ in range(5):
                await asyncio.sleep(0.2)
                async with asyncio.timeout(1.0), raw(site) as (reader, writer):  # who has asked for nothing is next
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
            for task in floods:
                assert not task.done()
                task.cancel()
        assert 10 < num_answered < 400
        assert 'limit="loop"}' in (await site.http.get("/metrics")).text

    on_site(work, http=HttpLimits(loop=Pace(burst=0.01, per_s=0.05)))


def test_many_who_say_much_on_the_play_wire_take_a_share_of_the_loop_and_hold_up_nobody_else() -> None:
    num_heard = 0

    async def say(site: Site, session: str) -> None:
        nonlocal num_heard
        async with site.play(session, "?watch=true") as socket:
            await message(socket, "hello")
            for number in range(10_000):
                await socket.send(json.dumps({"type": "ping", "t": number}))
                await message(socket, "pong")
                num_heard += 1

    async def work(site: Site) -> None:
        session = await site.open()
        async with unharmed(site), site.play(session) as modest:
            await message(modest, "hello")
            floods = [asyncio.create_task(say(site, session)) for _ in range(30)]
            await asyncio.sleep(0.5)
            before = num_heard
            for number in range(10):
                await asyncio.sleep(0.2)
                await modest.send(json.dumps({"type": "ping", "t": number}))
                assert (await message(modest, "pong"))["t"] == number
            assert 10 < num_heard - before < 1500, num_heard
            for task in floods:
                assert not task.done()
                task.cancel()
        assert 'limit="play_loop"}' in (await site.http.get("/metrics")).text

    much = PlayLimits(messages=Pace(burst=1e9, per_s=1e9))
    on_site(work, play=much, http=HttpLimits(play_loop=Pace(burst=0.01, per_s=0.02)))


def test_what_comes_in_the_smallest_pieces_is_taken_in_short_ones() -> None:
    """A read of 256 KiB has 43,000 of them, each an event."""
    chunked = b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def work(site: Site) -> None:
        session = await site.open()
        async with in_short_pieces(0.25):
            async with raw_play(site, session) as (reader, writer):
                writer.write(frame(TEXT) * 43_000)
                await ended(reader)
            async with raw(site) as (reader, writer):
                writer.write(chunked + b"1\r\nx\r\n" * 80_000)
                assert b" 413 " in await ended(reader, within_s=30.0)
        await answered(site)

    on_site(work)
