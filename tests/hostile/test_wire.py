"""The link between a worker and its server, and who comes to it: any bytes are a message of ours or one clear error."""

import asyncio
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.shapes import damaged, messages, plain
from worldmove.errors import MessageError
from worldmove.fleet.hosts_local import LocalHosts, LocalHostsConfig
from worldmove.limits import MAX_BLOB_BYTES
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import MAX_FRAME_BYTES, READ_INTO, Link, frame
from worldmove.worker.messages import Poll, Shutdown, ToServer, ToWorker

WIRES = {"to the server": ToServer, "to a worker": ToWorker}
"""Each with the messages of a move."""
ENCODER = msgspec.msgpack.Encoder()


def taken(data: bytes, kinds: Any) -> object | None:
    """What a link's end makes of these bytes: a message, None at their end, or the one error."""

    async def main() -> object | None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        link: Link[object, object] = Link(reader, None, msgspec.msgpack.Decoder(kinds))  # type: ignore[arg-type]
        try:
            return await link.take()
        except MessageError:
            return None

    return asyncio.run(main())


@pytest.mark.parametrize("kinds", WIRES.values(), ids=list(WIRES))
@settings(max_examples=12)
@given(data=st.data())
def test_what_is_almost_a_message_is_one_or_one_error(kinds: Any, data: st.DataObject) -> None:
    try:
        body = ENCODER.encode(data.draw(plain(kinds)))
    except OverflowError:
        return  # no msgpack says such a number
    read = taken(frame(body), kinds)
    assert read is None or msgspec.msgpack.decode(ENCODER.encode(read), type=kinds) == read


@settings(max_examples=12)
@given(data=st.data())
def test_damaged_frames_are_messages_the_end_or_one_error(data: st.DataObject) -> None:
    kinds = data.draw(st.sampled_from(list(WIRES.values())))
    whole = frame(ENCODER.encode(data.draw(messages(kinds))))
    taken(data.draw(damaged(whole) | st.binary(max_size=64)), kinds)


@contextmanager
def at_most(num_bytes: int) -> Iterator[None]:
    """Fail if what is done inside holds more than so many bytes at once."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= num_bytes, f"{peak:,} bytes"


HEADER = {"to": "a", "sender": "b", "incarnation": 1, "session": "s", "attempt": "m", "epoch": 1}
BIG = 1 << 61
GREEDY: dict[str, Callable[[], dict[str, Any]]] = {
    "a dictionary of a million names": lambda: {
        "type": "hello",
        "worker": "w",
        "incarnation": 1,
        "pid": 1,
        "num_slots": 1,
        "arena_bytes": 1,
        "copies": [],
        "environment": {f"{number:x}": "" for number in range(1 << 20)},
    },
    "a million key changes": lambda: {"type": "inputs", "session": "s", "block": 1, "changes": [{}] * (1 << 20)},
    "many digests": lambda: {
        "type": "proof",
        **HEADER,
        "block": 1,
        "num_bytes": 1,
        "manifest_digest": bytes(32),
        "groups": [bytes(16)] * (1 << 17),
    },
    "as many places as may be": lambda: {
        "type": "boundary",
        **HEADER,
        "block": 1,
        "manifest": b"",
        "placement": [BIG + number for number in range(1 << 17)],
    },
    "too many phases": lambda: {"type": "ended", **HEADER, "phases": [["x", 0.0, 1.0]] * (1 << 18)},
    "a message within messages": lambda: {"type": "poll", "poll": [[[]]] * (1 << 20)},
    "a blob that fills the frame": lambda: {
        "type": "boundary",
        **HEADER,
        "block": 1,
        "placement": [],
        "manifest": bytes(MAX_BLOB_BYTES),
    },
}
"""Made where they are wanted: the largest is a second of a core and a hundred megabytes."""


@pytest.mark.parametrize("message", GREEDY.values(), ids=list(GREEDY))
def test_a_frame_is_read_into_no_more_than_is_announced(message: Callable[[], dict[str, Any]]) -> None:
    body = ENCODER.encode(message())
    assert len(body) <= MAX_FRAME_BYTES
    with at_most(len(body) * READ_INTO):
        for kinds in (ToServer, ToWorker):
            try:
                msgspec.msgpack.decode(body, type=kinds)
            except msgspec.DecodeError:
                continue


def test_a_frame_that_says_it_is_long_and_is_not_takes_no_memory() -> None:
    head = struct.pack(">II8s", MAX_FRAME_BYTES, MAX_FRAME_BYTES ^ 0xFFFF_FFFF, bytes(8))
    with at_most(1 << 20):
        assert taken(head + b"x" * 1000, ToServer) is None


def test_what_a_worker_or_its_server_says_is_read_where_nothing_is_wrong_with_it() -> None:
    said = ENCODER.encode({"type": "poll", "poll": 7})
    assert taken(frame(said), ToWorker) == Poll(poll=7)


def test_depth_is_refused_without_a_crash() -> None:
    deep = b"\x91" * 200_000 + b"\xc0"
    field = b"\x82\xa4type\xa4poll\xa4poll" + deep
    before_the_type = b"\x82\xa1x" + deep + b"\xa4type\xa4poll"
    for body in (deep, field, before_the_type):
        assert taken(frame(body), ToServer) is None


def test_who_comes_to_the_servers_socket_and_is_no_worker_of_its_own_is_sent_away(tmp_path: Path) -> None:
    """Noise, silence, half a frame, and a false hello; none of them keeps the socket from the next."""
    hello = {
        "type": "hello",
        "worker": "worker-1",
        "incarnation": 1,
        "pid": 1,
        "environment": {},
        "num_slots": 1,
        "arena_bytes": 1,
        "copies": [],
    }

    async def main() -> None:
        hosts = LocalHosts(LocalHostsConfig(worker=WorkerConfig(engine="reference:tiny"), hello_s=0.2))
        await hosts.listen()
        assert hosts.run_dir is not None
        path = hosts.run_dir / "server.sock"
        try:
            for said in (b"GET / HTTP/1.1\r\n\r\n", b"", b"\0\0\1\0abc", frame(ENCODER.encode(hello))):
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(said)
                async with asyncio.timeout(5):
                    assert await reader.read() in (b"", frame(ENCODER.encode(Shutdown())))
                writer.close()
        finally:
            await hosts.close()

    asyncio.run(main())
