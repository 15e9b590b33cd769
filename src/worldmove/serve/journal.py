"""One session's record as it grows, from its first block on: the bytes that ``record_file`` reads.

The server keeps every session's journal whole, so that whoever asks for a record gets it from the beginning. Its
size has a limit; at the limit the journal ends, says so, and what it has stays a whole record of so many blocks.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from worldmove.engine.base import KeyChange
from worldmove.errors import FileRefused
from worldmove.fleet.reports import MoveReport
from worldmove.serve.record_entries import (
    BlockEntry,
    EndEntry,
    Entry,
    LeavesEntry,
    MoveEntry,
    RecordHeader,
    StateEntry,
)
from worldmove.serve.record_file import encode_entry, encode_header
from worldmove.worker.messages import BlockDone, StateDone

MAX_JOURNAL_BYTES = 32 << 20
"""Eighteen hours of four blocks a second. In memory a journal takes about two and a half times its bytes."""
PIECE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class _Written:
    """An entry's bytes, and how many blocks and moves stand up to it."""

    data: bytes
    num_blocks: int
    num_moves: int


class Journal:
    """What one session has done. Nothing of it changes once it is written."""

    def __init__(self, limit_bytes: int = MAX_JOURNAL_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._written: list[_Written] = []
        self._num_bytes = 0
        self._last: tuple[str, int, int] | None = None
        """Worker, epoch and number of the newest block."""
        self._paths: tuple[str, ...] | None = None
        self._ended = False
        self._grown = asyncio.Event()

    @property
    def begun(self) -> bool:
        """Whether the session's beginning is known: else there is no record of it."""
        return bool(self._written)

    def begin(self, header: RecordHeader) -> None:
        """The session is open."""
        if not self.begun:
            self._append(_Written(encode_header(header), 0, 0))

    def block(self, worker: str, done: BlockDone, changes: Sequence[KeyChange]) -> None:
        """A block was shown. ``changes``: the list that it was computed from."""
        listed = tuple((change.number, change.key, change.down) for change in changes)
        self._write(BlockEntry(done.block, done.epoch, worker, listed, done.frame_sha256))
        self._last = (worker, done.epoch, done.block)

    def state(self, worker: str, done: StateDone) -> None:
        """An owner says what its state is. Kept if it is the state after the newest block that was shown."""
        if self._last != (worker, done.epoch, done.block):
            return
        if done.paths != self._paths:
            self._paths = done.paths
            self._write(LeavesEntry(done.paths))
        self._write(StateEntry(done.block, done.state_digest, done.leaf_digests))

    def move(self, next_block: int, report: MoveReport) -> None:
        """A move has ended."""
        self._write(MoveEntry(next_block, report))

    def end(self, why: str) -> None:
        """The session has ended, or its journal is full."""
        if self.begun and not self._ended:
            self._append(_Written(_end(self._written[-1], why), 0, 0))
        self._ended = True
        self._grown.set()

    def follow(self, num_blocks: int | None = None, *, wait: bool = True) -> "Following":
        """Give the record from its first byte on, and what is added, until it ends or has so many blocks.

        Without ``wait`` it ends with what there is.
        """
        return Following(self, num_blocks, wait=wait)

    async def piece(self, position: int, num_blocks: int | None, *, wait: bool) -> tuple[bytes, int | None]:
        """Return some bytes from an entry on, and the entry after them; None where nothing follows."""
        while position == len(self._written) and not self._ended and wait:
            self._grown.clear()
            await self._grown.wait()
        if position == len(self._written):
            why = "it was asked for what there was"
            return b"" if self._ended else _end(self._written[-1], why), None
        part = self._part(position, num_blocks)
        data = b"".join(written.data for written in part)
        if num_blocks is not None and part[-1].num_blocks >= num_blocks:
            return data + _end(part[-1], f"{num_blocks} blocks were asked for"), None
        return data, position + len(part)

    def _part(self, position: int, num_blocks: int | None) -> list[_Written]:
        """Return what is sent at once: some entries, and none after the last block that was asked for."""
        part: list[_Written] = []
        size = 0
        for written in self._written[position : position + 1024]:
            part.append(written)
            size += len(written.data)
            if size >= PIECE_BYTES or written.num_blocks == num_blocks:
                break
        return part

    def _write(self, entry: Entry) -> None:
        if not self.begun or self._ended:
            return
        last = self._written[-1]
        try:
            data = encode_entry(last.data, entry)
        except FileRefused as error:
            self.end(str(error))
            return
        if self._num_bytes + len(data) > self._limit_bytes:
            self.end(f"the journal of a session holds {self._limit_bytes:,} bytes, and no more")
            return
        num_blocks = last.num_blocks + isinstance(entry, BlockEntry)
        self._append(_Written(data, num_blocks, last.num_moves + isinstance(entry, MoveEntry)))

    def _append(self, written: _Written) -> None:
        self._written.append(written)
        self._num_bytes += len(written.data)
        self._grown.set()


class Following:
    """A journal as it is read."""

    def __init__(self, journal: Journal, num_blocks: int | None, *, wait: bool) -> None:
        self._journal = journal
        self._num_blocks = num_blocks
        self._wait = wait
        self._position: int | None = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while self._position is not None:
            data, self._position = await self._journal.piece(self._position, self._num_blocks, wait=self._wait)
            if data:
                return data
        raise StopAsyncIteration


def _end(last: _Written, why: str) -> bytes:
    return encode_entry(last.data, EndEntry(why, last.num_blocks, last.num_moves))
