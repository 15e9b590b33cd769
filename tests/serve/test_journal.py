"""A session's journal, and whoever reads along."""

import asyncio
import io
from collections.abc import AsyncIterator

import msgspec

from tests.serve.test_record_file import HEADER, REPORT
from worldmove.engine.base import KeyChange
from worldmove.limits import MAX_BLOB_BYTES, MAX_MESSAGE_BYTES, MAX_NODES
from worldmove.serve.journal import Journal
from worldmove.serve.record_entries import BlockEntry, EndEntry, Entry, LeavesEntry, MoveEntry, StateEntry
from worldmove.serve.record_file import Ending, RecordReader
from worldmove.worker.messages import BlockDone, StateDone

FIRST = HEADER.first_block


def block(number: int, epoch: int = 1) -> BlockDone:
    return BlockDone(
        session="s-1",
        epoch=epoch,
        block=number,
        frames=b"",
        frame_sha256=(bytes([number]) * 32,) * 2,
        notes=(),
        compute_s=0.1,
    )


def state(number: int, *paths: str, epoch: int = 1) -> StateDone:
    return StateDone(
        session="s-1",
        epoch=epoch,
        block=number,
        state_digest=f"d{number}",
        paths=paths,
        leaf_digests=bytes(8 * len(paths)),
    )


def begun(limit_bytes: int = 1 << 20) -> Journal:
    journal = Journal(limit_bytes)
    journal.begin(HEADER)
    return journal


async def collected(follow: AsyncIterator[bytes]) -> tuple[list[Entry], RecordReader]:
    data = b"".join([piece async for piece in follow])
    reader = RecordReader(io.BytesIO(data), len(data))
    return list(reader), reader


def read(journal: Journal, num_blocks: int | None = None) -> tuple[list[Entry], RecordReader]:
    return asyncio.run(collected(journal.follow(num_blocks)))


def test_a_journal_holds_what_was_shown_in_order_and_ends_with_its_session() -> None:
    journal = begun()
    journal.block("w-1", block(FIRST), (KeyChange(number=1, key="up", down=True),))
    journal.state("w-1", state(FIRST, "a", "b"))
    journal.move(FIRST + 1, REPORT)
    journal.block("w-2", block(FIRST + 1, epoch=2), ())
    journal.state("w-2", state(FIRST + 1, "a", "b", epoch=2))
    journal.end("This session was closed.")
    journal.block("w-2", block(FIRST + 2, epoch=2), ())
    entries, reader = read(journal)
    assert [type(entry) for entry in entries] == [
        BlockEntry,
        LeavesEntry,  # once: the second state has the same leaves
        StateEntry,
        MoveEntry,
        BlockEntry,
        StateEntry,
        EndEntry,
    ]
    assert isinstance(entries[0], BlockEntry)
    assert entries[0].changes == ((1, "up", True),)
    assert (reader.progress.ending, reader.progress.why) == (Ending.WHOLE, "This session was closed.")


def test_a_state_of_a_block_that_was_not_shown_or_not_from_its_owner_is_left_out() -> None:
    journal = begun()
    journal.state("w-1", state(FIRST, "a"))
    journal.block("w-1", block(FIRST), ())
    journal.state("w-2", state(FIRST, "a"))
    journal.state("w-1", state(FIRST, "a", epoch=2))
    journal.state("w-1", state(FIRST + 1, "a"))
    journal.end("closed")
    assert not [entry for entry in read(journal)[0] if isinstance(entry, StateEntry)]


def test_as_many_blocks_as_were_asked_for_are_a_whole_record() -> None:
    journal = begun()
    for number in range(FIRST, FIRST + 5):
        journal.block("w-1", block(number), ())
    entries, reader = read(journal, 3)
    assert reader.progress.num_blocks == 3
    assert reader.progress.why == "3 blocks were asked for"
    assert len(entries) == 4


def test_what_there_is_is_a_whole_record_too() -> None:
    journal = begun()
    journal.block("w-1", block(FIRST), ())
    entries, reader = asyncio.run(collected(journal.follow(wait=False)))
    assert (len(entries), reader.progress.ending) == (2, Ending.WHOLE)
    assert asyncio.run(collected(journal.follow(7, wait=False)))[0] == entries


def test_whatever_a_worker_can_say_of_a_state_is_an_entry_that_its_reader_takes() -> None:
    paths = tuple(f"{number:0127}" for number in range(MAX_NODES))  # as long together as paths may be
    said = state(FIRST, *paths)
    assert MAX_BLOB_BYTES < len(msgspec.msgpack.encode(said)) < MAX_MESSAGE_BYTES
    journal = begun(limit_bytes=32 << 20)
    journal.block("w-1", block(FIRST), ())
    journal.state("w-1", said)
    journal.block("w-1", block(FIRST + 1), ())
    journal.end("closed")
    entries, reader = read(journal)
    assert [type(entry) for entry in entries] == [BlockEntry, LeavesEntry, StateEntry, BlockEntry, EndEntry]
    assert reader.progress.ending is Ending.WHOLE


def test_an_entry_that_no_reader_would_take_is_not_written_and_ends_the_journal_which_says_so() -> None:
    journal = begun(limit_bytes=64 << 20)
    journal.block("w-1", block(FIRST), ())
    journal.state("w-1", state(FIRST, "a" * (MAX_MESSAGE_BYTES + 1)))
    journal.block("w-1", block(FIRST + 1), ())
    entries, reader = read(journal)
    assert [type(entry) for entry in entries] == [BlockEntry, EndEntry]
    assert reader.progress.ending is Ending.WHOLE
    assert reader.progress.why == "an entry of a record has 20,971,520 bytes at most, and this one 20,971,535"


def test_who_reads_along_gets_each_block_as_it_is_shown() -> None:
    async def main() -> RecordReader:
        journal = begun()
        following = asyncio.create_task(collected(journal.follow(4)))
        for number in range(FIRST, FIRST + 4):
            await asyncio.sleep(0.001)
            journal.block("w-1", block(number), ())
        return (await following)[1]

    assert asyncio.run(main()).progress.num_blocks == 4


def test_a_full_journal_ends_and_stays_a_whole_record_within_its_limit() -> None:
    journal = begun(limit_bytes=2000)
    for number in range(FIRST, FIRST + 99):
        journal.block("w-1", block(number), ())
    _, reader = read(journal)
    assert 0 < reader.progress.num_blocks < 99
    assert reader.progress.ending is Ending.WHOLE
    assert "holds 2,000 bytes" in reader.progress.why
    assert reader.progress.num_bytes < 2200  # its end is written beside the limit


def test_a_session_whose_beginning_is_not_known_has_no_record() -> None:
    journal = Journal()
    journal.block("w-1", block(FIRST), ())
    journal.end("closed")
    assert not journal.begun
