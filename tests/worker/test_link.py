"""Frames between a worker and its server."""

import asyncio
import struct
from pathlib import Path

import msgspec
import pytest

from worldmove.errors import MessageError
from worldmove.worker import link
from worldmove.worker.link import ServerLink, WorkerEnd, server_link, worker_end
from worldmove.worker.messages import BlockDone, Close, Poll, ToServer, ToWorker


async def joined(folder: Path) -> tuple[WorkerEnd, ServerLink, asyncio.Server]:
    """Return both ends of a link, and the server that must be closed."""
    ends: asyncio.Queue[WorkerEnd] = asyncio.Queue()
    path = folder / "s"
    server = await asyncio.start_unix_server(lambda reader, writer: ends.put_nowait(worker_end(reader, writer)), path)
    worker = server_link(*await asyncio.open_unix_connection(path))
    return await ends.get(), worker, server


def test_messages_arrive_whole_in_order_and_the_end_is_none(tmp_path: Path) -> None:
    big = BlockDone(session="s-1", epoch=1, block=0, frames=bytes(3 << 20), frame_sha256=(), notes=(), compute_s=0.1)

    async def run() -> tuple[list[ToWorker], list[ToServer | None]]:
        server, worker, listening = await joined(tmp_path)
        server.send(Poll(poll=1))
        server.send(Close(session="s-1"))
        worker.send(big)
        worker.send(big)
        taken = [await server.take(), await server.take()]
        got: list[ToWorker] = []
        reading = asyncio.create_task(worker.take_all(got.append))
        server.close()
        await reading
        worker.close()
        taken.append(await server.take())
        listening.close()
        return got, taken

    got, taken = asyncio.run(run())
    assert got == [Poll(poll=1), Close(session="s-1")]
    assert taken == [big, big, None]


def test_a_dead_link_drops_what_is_sent(tmp_path: Path) -> None:
    async def run() -> None:
        server, worker, listening = await joined(tmp_path)
        server.close()
        server.send(Poll(poll=1))
        assert await worker.take() is None
        worker.close()
        listening.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">II8x", link.MAX_FRAME_BYTES + 1, ~(link.MAX_FRAME_BYTES + 1) & 0xFFFFFFFF),
        struct.pack(">II8x", 3, 3) + b"\xc1\xc1\xc1",
        struct.pack(">II8x", 3, ~3 & 0xFFFFFFFF) + b"\xc1\xc1\xc1",
        link.frame(b"\xc1\xc1\xc1"),
        link.frame(b"\x93\x01\x02\x03"),
        link.frame(b"\x82\xa4type\xa4poll\xa4poll\xff"),
        link.frame(b"\x83\xa4type\xa4poll\xa4poll\x01\xa4more\x01\xc0"),
    ],
    ids=["too long", "no frame", "damaged", "no msgpack", "no message", "below its bound", "an unknown field"],
)
def test_what_is_no_message_of_ours_ends_the_link(tmp_path: Path, frame: bytes) -> None:
    async def run() -> None:
        path = tmp_path / "s"
        writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        listening = await asyncio.start_unix_server(lambda _, writer: writers.put_nowait(writer), path)
        worker = server_link(*await asyncio.open_unix_connection(path))
        writer = await writers.get()
        writer.write(frame)
        with pytest.raises(MessageError):
            await worker.take()
        worker.close()
        writer.close()
        listening.close()

    asyncio.run(run())


def test_a_message_that_no_frame_may_hold_is_refused_where_it_is_sent(tmp_path: Path) -> None:
    async def run() -> None:
        server, worker, listening = await joined(tmp_path)
        too_big = BlockDone(
            session="s", epoch=1, block=0, frames=bytes(link.MAX_FRAME_BYTES), frame_sha256=(), notes=(), compute_s=0
        )
        with pytest.raises(MessageError):
            worker.send(too_big)
        server.close()
        worker.close()
        listening.close()

    asyncio.run(run())


def followed(body: bytes) -> bytes:
    """A frame that says that pictures follow it."""
    head = link.frame(body)
    length = len(body) | 1 << 31
    return struct.pack(">II", length, length ^ 0xFFFFFFFF) + head[8:]


BLOCK = BlockDone(session="s-1", epoch=1, block=0, frames=b"", frame_sha256=(), notes=(), compute_s=0.1)


@pytest.mark.parametrize(
    "data",
    [
        followed(msgspec.msgpack.encode(Close(session="s-1"))) + link.frame(b"pictures"),
        followed(msgspec.msgpack.encode(msgspec.structs.replace(BLOCK, frames=b"x"))) + link.frame(b"pictures"),
        followed(msgspec.msgpack.encode(BLOCK)) + followed(b"pictures"),
        followed(msgspec.msgpack.encode(BLOCK)) + link.frame(b"pictures")[:-1] + b"!",
    ],
    ids=["no block", "a block with pictures", "pictures that are followed", "damaged pictures"],
)
def test_pictures_that_follow_what_they_should_not_end_the_link(data: bytes) -> None:
    async def run() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        decoder = msgspec.msgpack.Decoder(ToServer | ToWorker)
        with pytest.raises(MessageError):
            await link.Link(reader, None, decoder).take()  # type: ignore[arg-type]

    asyncio.run(run())
