"""The bytes of a record: a checked header, then entries, each chained to all before it.

    header   frame "WMRC", version, msgpack of RecordHeader | check, 8 bytes
    entry    length, 4 bytes | check of the length, 4 bytes | msgpack of the entry | check, 8 bytes

Every check is seeded with the one before it, so an entry that was changed, dropped, repeated or put elsewhere is
found. A record may end anywhere: what is left of an entry that is not whole is dropped, and said. An entry that is
whole and has not its check is damage, and nothing of the file is taken.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO

import msgspec
import xxhash

from worldmove.errors import FileRefused
from worldmove.limits import MAX_MESSAGE_BYTES
from worldmove.serve.record_entries import (
    BlockEntry,
    EndEntry,
    Entry,
    LeavesEntry,
    MoveEntry,
    RecordHeader,
    StateEntry,
)
from worldmove.state.checked_frame import CHECK, checked, read_checked
from worldmove.state.frame import frame
from worldmove.state.leaf import LEAF_DIGEST_BYTES

RECORD_MAGIC = b"WMRC"
VERSION = 1
MAX_ENTRY_BYTES = MAX_MESSAGE_BYTES
_PREFIX = struct.Struct("<II")
_ENTRIES = msgspec.msgpack.Decoder(Entry)


def encode_header(header: RecordHeader) -> bytes:
    """Return the first bytes of a record."""
    return checked(frame(RECORD_MAGIC, VERSION, msgspec.msgpack.encode(header)))


def encode_entry(before: bytes, entry: Entry) -> bytes:
    """Return the bytes of an entry. ``before``: what stands before it, or the last 8 bytes of that.

    Raises FileRefused for one that no reader would take.
    """
    seed = _seed(before)
    body = msgspec.msgpack.encode(entry)
    if len(body) > MAX_ENTRY_BYTES:
        raise FileRefused(f"an entry of a record has {MAX_ENTRY_BYTES:,} bytes at most, and this one {len(body):,}")
    prefix = _PREFIX.pack(len(body), _length_check(len(body), seed))
    return prefix + body + CHECK.pack(xxhash.xxh3_64_intdigest(body, seed))


class Ending(Enum):
    """How a record's bytes end."""

    WHOLE = "whole"
    """With its end."""
    OPEN = "open"
    """Between two entries: it was still being written, or cut just there."""
    CUT = "cut"
    """Inside an entry, which is dropped."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a record was read, and how that ended."""

    num_blocks: int = 0
    num_moves: int = 0
    num_states: int = 0
    num_bytes: int = 0
    """Bytes of the header and of all whole entries."""
    num_dropped: int = 0
    """Bytes after them."""
    ending: Ending = Ending.OPEN
    why: str = ""
    """What the end says."""


class RecordReader:
    """Reads one record from the start. Takes no more memory than one entry, and no entry longer than what is left."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        """Read the header. ``size``: of the whole file. Raises FileRefused."""
        body = read_checked(stream, size, magic=RECORD_MAGIC, version=VERSION, what="record")
        try:
            self.header = msgspec.msgpack.decode(body, type=RecordHeader)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise FileRefused(f"This record is damaged: its header does not decode ({error}).") from error
        self._stream = stream
        self._size = size
        self._seed = _seed(checked(frame(RECORD_MAGIC, VERSION, body)))
        self._num_leaves: int | None = None
        self.progress = Progress(num_bytes=stream.tell())

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries; ``progress`` then says how the record ends. Raises FileRefused at damage."""
        while (body := self._body()) is not None:
            entry = self._decoded(body)
            self._account(entry)
            self.progress.num_bytes = self._stream.tell()
            yield entry

    def _body(self) -> bytes | None:
        """Return the next entry's body; None at the end, and where the rest is not a whole entry."""
        left = self._size - self.progress.num_bytes
        if self.progress.ending is Ending.WHOLE:
            if left:
                raise FileRefused(f"This record is damaged: {left:,} bytes stand behind its end.")
            return None
        prefix = self._stream.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            self._cut(left)
            return None
        length, check = _PREFIX.unpack(prefix)
        if check != _length_check(length, self._seed) or length > MAX_ENTRY_BYTES:
            raise self._damaged("has not the length that it says")
        if left < _PREFIX.size + length + CHECK.size:
            self._cut(left)
            return None
        body, rest = self._stream.read(length), self._stream.read(CHECK.size)
        seed = xxhash.xxh3_64_intdigest(body, self._seed)
        if CHECK.pack(seed) != rest:
            raise self._damaged("has not the check that it says")
        self._seed = seed
        return body

    def _cut(self, left: int) -> None:
        self.progress.num_dropped = left
        self.progress.ending = Ending.CUT if left else Ending.OPEN

    def _decoded(self, body: bytes) -> Entry:
        try:
            return _ENTRIES.decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise self._damaged(f"does not decode ({error})") from error

    def _account(self, entry: Entry) -> None:
        """Count an entry. Raises FileRefused where it does not belong here."""
        progress = self.progress
        next_block = self.header.first_block + progress.num_blocks
        match entry:
            case BlockEntry(block=block, frame_sha256=frames):
                if block != next_block or len(frames) != self.header.frames_per_block:
                    raise self._damaged(f"is block {block} with {len(frames)} frames, where block {next_block} is next")
                progress.num_blocks += 1
            case LeavesEntry(paths=paths):
                self._num_leaves = len(paths)
            case StateEntry(block=block, leaf_digests=digests):
                if block != next_block - 1 or len(digests) != LEAF_DIGEST_BYTES * (self._num_leaves or 0):
                    raise self._damaged(f"is the state after block {block}, where block {next_block} is next")
                progress.num_states += 1
            case MoveEntry():
                progress.num_moves += 1
            case EndEntry(why=why, num_blocks=num_blocks, num_moves=num_moves):
                if (num_blocks, num_moves) != (progress.num_blocks, progress.num_moves):
                    raise self._damaged(f"is its end after {num_blocks} blocks, and {progress.num_blocks} are there")
                progress.ending, progress.why = Ending.WHOLE, why

    def _damaged(self, what: str) -> FileRefused:
        at = self.progress.num_bytes
        return FileRefused(f"This record is damaged: the entry at byte {at:,} {what}.")


def _seed(before: bytes) -> int:
    (seed,) = CHECK.unpack(before[-CHECK.size :])
    return int(seed)


def _length_check(length: int, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(length.to_bytes(4, "little"), seed) & 0xFFFF_FFFF
