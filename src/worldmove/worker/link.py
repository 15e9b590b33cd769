"""The edge between a worker and its server: typed messages over one ordered stream.

A frame is 4 bytes of length, the same 4 bytes with every bit the other way, 8 bytes of xxh3_64 of what follows (all
big endian), and a msgpack message of the direction's tagged union. The highest bit of the length: a second frame has
the pictures of this block. A frame that arrives as another, is too long, or
is no message of ours ends the link: nothing after it could be trusted. A damaged message may decode to another one.

The order is part of the contract (``fleet.hosts.Hosts``): a message is handed over in its turn or never.
"""

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
import xxhash

from worldmove.errors import MessageError
from worldmove.limits import MAX_BLOB_BYTES, MAX_MESSAGE_BYTES
from worldmove.worker.messages import BlockDone, ToServer, ToWorker

MAX_FRAME_BYTES = MAX_MESSAGE_BYTES
"""A manifest of the longest with its placement; a proof of as many groups as there may be."""
READ_INTO = 8
"""How many times its frame's longest length a message may take once it is read: every list in one is bounded."""
MAX_UNSENT_BYTES = 256 << 20
LARGE_BYTES = 1 << 18
"""Pictures of so many bytes follow their message in a frame of their own, copied into nothing: encoded, they would keep
Python's lock for milliseconds, right when a session is frozen."""
_HEAD = struct.Struct(">II8s")
_ALL_BITS = (1 << 32) - 1
_FOLLOWED = 1 << 31

SentT = TypeVar("SentT")
TakenT = TypeVar("TakenT")


def frame(body: bytes) -> bytes:
    """Return an encoded message as it travels."""
    return _head(body) + body


def _head(body: bytes, flag: int = 0) -> bytes:
    length = len(body) | flag
    return _HEAD.pack(length, length ^ _ALL_BITS, xxhash.xxh3_64_digest(body))


class Link(Generic[SentT, TakenT]):
    """One end of a link. ``send`` queues; ``take_all`` hands over what arrives until the other end is gone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, decoder: msgspec.msgpack.Decoder[TakenT]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder()
        self.num_taken = 0
        """How many messages have come."""
        self.not_ours = b""
        """The body of a frame that came whole and is no message of ours."""

    def send(self, message: SentT) -> None:
        """Queue a message; never waits. A dead link drops it, and one whose reader stalls is closed."""
        if self._writer.is_closing():
            return
        pictures = b""
        if isinstance(message, BlockDone) and len(message.frames) > LARGE_BYTES:
            pictures = message.frames
            message = msgspec.structs.replace(message, frames=b"")
        body = self._encoder.encode(message)
        if len(body) + len(pictures) > MAX_FRAME_BYTES:
            raise MessageError(f"a message of {len(body) + len(pictures):,} bytes is longer than {MAX_FRAME_BYTES:,}")
        # In one piece: the other end is woken once.
        self._writer.write(_head(body, _FOLLOWED if pictures else 0) + body)
        if pictures:
            self._writer.write(_head(pictures))
            self._writer.write(pictures)
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._writer.transport.abort()

    async def take(self) -> TakenT | None:
        """Return the next message, or None once the other end is gone. Raises MessageError."""
        try:
            body, is_followed = await self._frame()
            pictures, is_more = await self._frame() if is_followed else (b"", False)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        try:
            message = self._decoder.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            self.not_ours = body
            raise MessageError(f"not a message of ours: {error}") from error
        if not is_followed:
            return message
        if not isinstance(message, BlockDone) or message.frames or is_more or len(pictures) > MAX_BLOB_BYTES:
            raise MessageError("pictures follow what is no block without any, or too many")
        return msgspec.structs.replace(message, frames=pictures)

    async def _frame(self) -> tuple[bytes, bool]:
        """Return what the next frame carries, and whether another one belongs to it. Raises MessageError."""
        length, again, checksum = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
        if length != again ^ _ALL_BITS:
            raise MessageError("not the beginning of a frame")
        is_followed, length = bool(length & _FOLLOWED), length & ~_FOLLOWED
        if length > MAX_FRAME_BYTES:
            raise MessageError(f"a frame of {length:,} bytes is longer than {MAX_FRAME_BYTES:,}")
        body = await self._reader.readexactly(length)
        if xxhash.xxh3_64_digest(body) != checksum:
            raise MessageError("a frame arrived damaged")
        return body, is_followed

    async def take_all(self, on_message: Callable[[TakenT], None]) -> None:
        """Hand each message to ``on_message`` until the other end is gone."""
        while (message := await self.take()) is not None:
            self.num_taken += 1
            on_message(message)

    async def drain(self) -> None:
        """Wait until what was sent has left this process."""
        with suppress(ConnectionError):
            await self._writer.drain()

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """Close without waiting for what is unsent: the other end may never read it."""
        self._writer.transport.abort()


ServerLink = Link[ToServer, ToWorker]
"""The worker's end."""
WorkerEnd = Link[ToWorker, ToServer]
"""The server's end."""


def server_link(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ServerLink:
    """Return the worker's end of a connected stream."""
    return Link(reader, writer, msgspec.msgpack.Decoder(ToWorker))


def worker_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> WorkerEnd:
    """Return the server's end of a connected stream."""
    return Link(reader, writer, msgspec.msgpack.Decoder(ToServer))
