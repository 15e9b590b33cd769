"""A record's bytes: what was written comes back, a cut anywhere drops only a tail, and nothing damaged is taken."""

import io
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.errors import FileRefused
from worldmove.fleet.reports import MoveReport, Outcome, PhaseTime
from worldmove.serve.record_entries import (
    BlockEntry,
    EndEntry,
    Entry,
    LeavesEntry,
    MoveEntry,
    RecordHeader,
    StateEntry,
)
from worldmove.serve.record_file import Ending, Progress, RecordReader, encode_entry, encode_header
from worldmove.state.checked_frame import checked
from worldmove.state.frame import frame

HEADER = RecordHeader(
    worldmove="0",
    engine="reference:tiny",
    num_threads=1,
    frames_per_block=2,
    frames_per_s=8.0,
    session="s-1",
    seed=7,
    first_block=3,
    state_digest="xxh3-128:00",
    environment={"torch": "2"},
)
REPORT = MoveReport(
    session="s-1",
    attempt="a-1",
    source="w-1",
    destination="w-2",
    outcome=Outcome.COMMITTED,
    reason="done",
    detail="Moved to w-2",
    epoch=2,
    tries=1,
    transport="shm",
    started_at=1.5,
    took_s=0.25,
    pause_s=0.01,
    phases=(PhaseTime(side="source", name="freeze", start_s=0.0, end_s=0.5),),
)

keys = st.tuples(st.integers(0, 2**40), st.sampled_from(("up", "\x00", "é" * 9)), st.booleans())
digests = st.integers(0, 255).map(lambda number: bytes([number]) * 32)
paths_of_leaves = st.sampled_from(("frame", "caches[0].k", "['é']"))


@st.composite
def records(draw: st.DrawFn) -> list[Entry]:
    """The entries of a record that a journal could have written."""
    found: list[Entry] = []
    num_moves = num_blocks = num_leaves = 0
    for kind in draw(st.lists(st.sampled_from("bbbsm"), max_size=12)):
        if kind == "b":
            changes = tuple(draw(st.lists(keys, max_size=3)))
            shas = (draw(digests), draw(digests))
            found.append(BlockEntry(HEADER.first_block + num_blocks, draw(st.integers(1, 9)), "w-1", changes, shas))
            num_blocks += 1
        elif kind == "m":
            found.append(MoveEntry(HEADER.first_block + num_blocks, replace(REPORT, epoch=draw(st.integers(1, 9)))))
            num_moves += 1
        elif num_blocks:
            if draw(st.booleans()) or not num_leaves:
                paths = tuple(draw(st.lists(paths_of_leaves, min_size=1, max_size=4)))
                num_leaves = len(paths)
                found.append(LeavesEntry(paths))
            found.append(StateEntry(HEADER.first_block + num_blocks - 1, "d", bytes(8 * num_leaves)))
    if draw(st.booleans()):
        found.append(EndEntry("it was stopped", num_blocks, num_moves))
    return found


def encoded(entries: list[Entry], header: RecordHeader = HEADER) -> bytes:
    data = encode_header(header)
    for entry in entries:
        data += encode_entry(data, entry)
    return data


def decoded(data: bytes) -> tuple[list[Entry], Progress]:
    reader = RecordReader(io.BytesIO(data), len(data))
    return list(reader), reader.progress


@given(records())
def test_what_was_written_comes_back(entries: list[Entry]) -> None:
    data = encoded(entries)
    found, progress = decoded(data)
    assert found == entries
    assert (progress.num_bytes, progress.num_dropped) == (len(data), 0)
    assert (progress.ending is Ending.WHOLE) == any(isinstance(entry, EndEntry) for entry in entries)


@settings(max_examples=5)
@given(records())
def test_a_record_cut_at_any_byte_is_a_record_of_the_entries_that_are_whole(entries: list[Entry]) -> None:
    data = encoded(entries)
    begin = len(encode_header(HEADER))
    step = 1 + len(data) // 600  # every byte of a short record
    for size in range(0, len(data), step):
        if size < begin:
            with pytest.raises(FileRefused, match="record"):
                decoded(data[:size])
            continue
        found, progress = decoded(data[:size])
        assert found == entries[: len(found)]
        assert progress.num_bytes + progress.num_dropped == size
        assert progress.ending is (Ending.CUT if progress.num_dropped else Ending.OPEN)
        assert encoded(found) == data[: progress.num_bytes]


@settings(max_examples=100)
@given(records(), st.data())
def test_a_record_with_a_flipped_bit_is_refused_whole(entries: list[Entry], data: st.DataObject) -> None:
    whole = bytearray(encoded(entries))
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[at // 8] ^= 1 << at % 8
    with pytest.raises(FileRefused):
        decoded(bytes(whole))


@given(records().filter(lambda entries: len(entries) > 1), st.data())
def test_a_record_without_one_of_its_entries_or_with_one_twice_is_refused(
    entries: list[Entry], data: st.DataObject
) -> None:
    parts, whole = [], encode_header(HEADER)
    for entry in entries:
        parts.append(encode_entry(whole, entry))
        whole += parts[-1]
    at = data.draw(st.integers(0, len(parts) - 2))
    for changed in (parts[:at] + parts[at + 1 :], parts[: at + 1] + parts[at:]):
        with pytest.raises(FileRefused):
            decoded(encode_header(HEADER) + b"".join(changed))


@given(st.binary(max_size=300))
def test_no_bytes_of_another_kind_are_a_record(data: bytes) -> None:
    with pytest.raises(FileRefused):
        decoded(data)
    with pytest.raises(FileRefused):
        decoded(encode_header(HEADER) + bytes(16) + data)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([BlockEntry(4, 1, "w", (), (bytes(32),) * 2)], "is block 4 with 2 frames, where block 3 is next"),
        ([BlockEntry(3, 1, "w", (), (bytes(32),))], "is block 3 with 1 frames"),
        ([StateEntry(2, "d", bytes(8))], "is the state after block 2"),
        ([EndEntry("x", 1, 0)], "is its end after 1 blocks, and 0 are there"),
        ([EndEntry("x", 0, 0), EndEntry("x", 0, 0)], "stand behind its end"),
    ],
)
def test_entries_that_do_not_follow_from_each_other_are_refused(entries: list[Entry], says: str) -> None:
    with pytest.raises(FileRefused, match=says):
        decoded(encoded(entries))


def test_another_format_and_another_file_are_said_to_be_that() -> None:
    with pytest.raises(FileRefused, match="This record is of format 2, and this version of WorldMove reads 1"):
        decoded(checked(frame(b"WMRC", 2, b"whatever a later version has there")))
    with pytest.raises(FileRefused, match="This is no record of WorldMove: it begins with b'PK"):
        decoded(b"PK\x03\x04" + bytes(40))
    with pytest.raises(FileRefused, match="it begins with b''"):
        decoded(b"")


def test_a_hostile_length_takes_no_memory_that_the_file_does_not_have() -> None:
    start = encode_header(HEADER)
    lengths = [encode_entry(start, LeavesEntry(())) for _ in range(2)]
    huge = b"\xdd\xff\xff\xff\xff"  # a list of four thousand million entries
    bodies = [b"\x92\xa6leaves" + huge, b"\x95\xa5block\x00\x01\xa1w" + huge]
    tracemalloc.start()
    for body in bodies:
        with pytest.raises(FileRefused):
            decoded(checked(frame(b"WMRC", 1, body)))
    with pytest.raises(FileRefused):
        decoded(b"WMRC\x01\x00" + b"\xff" * 8 + bytes(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert lengths[0] == lengths[1]
