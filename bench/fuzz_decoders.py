"""What ``bench.fuzz`` throws bytes at: every decoder by name, with valid inputs to begin from.

Where a check or a frame stands before what is decoded, a decoder is there twice: as it is, and behind a frame that is
right, which no fuzzer would come upon.
"""

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from worldmove.errors import FileRefused, ManifestError, MessageError, TransportError
from worldmove.serve.client_messages import decode
from worldmove.serve.frames import FrameHeader, Kind, pack, unpack
from worldmove.serve.origin import host_is_known, origin_is_own, size_fits
from worldmove.serve.record_entries import EndEntry, RecordHeader
from worldmove.serve.record_file import RECORD_MAGIC, RecordReader, encode_entry, encode_header
from worldmove.serve.record_file import VERSION as RECORD_VERSION
from worldmove.state.checked_frame import checked
from worldmove.state.frame import frame
from worldmove.state.layout import LAYOUT_MAGIC, Layout
from worldmove.state.manifest import MANIFEST_MAGIC, VERSION, Manifest
from worldmove.state.saved import SAVED_MAGIC, parse_header
from worldmove.state.saved import VERSION as SAVED_VERSION
from worldmove.transport.shm import ShmTicket
from worldmove.transport.tcp import TcpTicket
from worldmove.transport.tcp_words import HELLO_BYTES, NUMBER_BYTES, RUN_BYTES, hello, num_runs_of, runs_of, token_of
from worldmove.worker.link import Link
from worldmove.worker.link import frame as link_frame
from worldmove.worker.messages import ToServer, ToWorker

Decoder = Callable[[bytes], object]
ANNOUNCED = (FileRefused, ManifestError, MessageError, TransportError, msgspec.DecodeError)
"""The one error that each decoder announces; anything else is a finding."""

HEADER = RecordHeader(
    worldmove="0",
    engine="reference:tiny",
    num_threads=1,
    frames_per_block=1,
    frames_per_s=8.0,
    session="s-1",
    seed=7,
    first_block=0,
    state_digest="xxh3-128:00",
    environment={"torch": "2"},
)
RECORD = encode_header(HEADER)
_LOOP = asyncio.new_event_loop()


def text(read: Callable[[str], object]) -> Decoder:
    """Read bytes as text: what is none becomes U+FFFD, as a browser's would; or stays half of a surrogate."""

    def reading(data: bytes) -> object:
        try:
            return read(data.decode("utf-8", "surrogatepass" if data[:1] == b"\0" else "replace"))
        except UnicodeDecodeError:
            return None

    return reading


def link(kinds: Any) -> Decoder:
    """Take one message of a link at whose end these bytes have come."""
    decoder = msgspec.msgpack.Decoder(kinds)

    def taking(data: bytes) -> object:
        reader = asyncio.StreamReader(loop=_LOOP)
        reader.feed_data(data)
        reader.feed_eof()
        taken = Link(reader, None, decoder).take()  # type: ignore[arg-type]
        try:
            return taken.send(None)  # everything is there: it never waits
        except StopIteration as ended:
            return ended.value

    return taking


def record(data: bytes) -> object:
    """Read a whole record."""
    return list(RecordReader(io.BytesIO(data), len(data)))


def entries(data: bytes) -> object:
    """Read a record whose entries are right but for their bodies: each a length byte and so many bytes."""
    written, left = RECORD, data
    while left:
        body, left = left[1 : 1 + left[0]], left[1 + left[0] :]
        if body:
            written += encode_entry(written, msgspec.Raw(body))  # type: ignore[arg-type]
    return record(written)


def saved(data: bytes) -> object:
    return parse_header(io.BytesIO(data), len(data))


def tcp_words(data: bytes) -> object:
    """Read what a source and a destination say first, and a request."""
    if len(data) == HELLO_BYTES:
        return token_of(data)
    wanted = num_runs_of(data[:NUMBER_BYTES].ljust(NUMBER_BYTES, b"\0"))
    runs = data[NUMBER_BYTES:][: wanted * RUN_BYTES]
    return runs_of(runs[: len(runs) // RUN_BYTES * RUN_BYTES], 1 << 20)


_to_server, _to_worker = link(ToServer), link(ToWorker)
DECODERS: dict[str, Decoder] = {
    "manifest": Manifest.from_bytes,
    "manifest, framed": lambda data: Manifest.from_bytes(frame(MANIFEST_MAGIC, VERSION, data)),
    "layout": Layout.from_bytes,
    "layout, framed": lambda data: Layout.from_bytes(frame(LAYOUT_MAGIC, VERSION, data)),
    "link to the server": _to_server,
    "link to the server, framed": lambda data: _to_server(link_frame(data)),
    "link to a worker": _to_worker,
    "link to a worker, framed": lambda data: _to_worker(link_frame(data)),
    "ticket of shared memory": msgspec.msgpack.Decoder(ShmTicket).decode,
    "ticket of TCP": msgspec.msgpack.Decoder(TcpTicket).decode,
    "words of TCP": tcp_words,
    "record": record,
    "record's header, framed": lambda data: record(checked(frame(RECORD_MAGIC, RECORD_VERSION, data))),
    "record's entries, framed": entries,
    "saved world": saved,
    "saved world, framed": lambda data: saved(checked(frame(SAVED_MAGIC, SAVED_VERSION, data))),
    "frame of the play wire": unpack,
    "message of a page": text(decode),
    "Host": text(lambda said: host_is_known(said, (), loopback_only=True)),
    "Origin": text(lambda said: origin_is_own(said, "localhost")),
    "Content-Length": text(size_fits),
}


def seeds(name: str, messages: Callable[[Any], list[Any]]) -> Iterator[bytes]:
    """Yield valid inputs of a decoder. ``messages`` gives some of a tagged union."""
    encode = msgspec.msgpack.encode
    match name:
        case "link to the server":
            yield from (link_frame(encode(message)) for message in messages(ToServer))
        case "link to the server, framed":
            yield from (encode(message) for message in messages(ToServer))
        case "link to a worker":
            yield from (link_frame(encode(message)) for message in messages(ToWorker))
        case "link to a worker, framed":
            yield from (encode(message) for message in messages(ToWorker))
        case _:
            yield from SEEDS.get(name, ())


_ROW = ["tensor", "float32", [4], [1], 0, 0, 0, 16, False, False]
_ARRAY = ["array", "<f", [4], [4], 0, 0, True]
_SCALAR = ["scalar", "int", b"\1"]
_END = msgspec.msgpack.encode(EndEntry(why="done", num_blocks=0, num_moves=0))
_BODY = msgspec.msgpack.encode([["list", [None, None]], [_SCALAR, _ROW], []])
_LAYOUT = msgspec.msgpack.encode([[["[0]", "tensor float32", [4]]], [16], 4096])
_FRAME = FrameHeader(
    kind=Kind.LIVE,
    action=2,
    index=1,
    width=3,
    height=2,
    show_after_ms=70,
    epoch=5,
    block=9,
    frame=11,
    number=99,
    pose=(-4, 7),
    server_life=2,
    sha256=bytes(32),
    receipt=bytes(8),
)
SEEDS: dict[str, tuple[bytes, ...]] = {
    "manifest": (frame(MANIFEST_MAGIC, VERSION, _BODY),),
    "manifest, framed": (_BODY, msgspec.msgpack.encode([["list", [None]], [_ARRAY], []])),
    "layout": (frame(LAYOUT_MAGIC, VERSION, _LAYOUT),),
    "layout, framed": (_LAYOUT,),
    "ticket of shared memory": (msgspec.msgpack.encode(["/a.sock", bytes(32), 4096]),),
    "ticket of TCP": (msgspec.msgpack.encode(["127.0.0.1", 99, bytes(32), 4096]),),
    "words of TCP": (hello(bytes(32)), (2).to_bytes(8, "big") + (16).to_bytes(8, "big") * 4),
    "record": (RECORD, RECORD + encode_entry(RECORD, EndEntry(why="done", num_blocks=0, num_moves=0))),
    "record's header, framed": (msgspec.msgpack.encode(HEADER),),
    "record's entries, framed": (bytes([len(_END)]) + _END,),
    "frame of the play wire": (pack(_FRAME, bytes(18)),),
    "message of a page": (b'{"type":"keys","changes":[[1,"up",true]]}', b'{"type":"ping","t":1}'),
    "Host": (b"localhost:8787", b"[::1]:80", b"127.0.0.1"),
    "Origin": (b"http://localhost:8787", b"https://[::1]"),
    "Content-Length": (b"12", b"0"),
}
