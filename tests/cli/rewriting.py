"""Records changed by whoever knows the format: every check is right again, only what they say is not true."""

from collections.abc import Callable, Iterable
from pathlib import Path

from worldmove.serve.record_entries import BlockEntry, EndEntry, Entry, MoveEntry
from worldmove.serve.record_file import RecordReader, encode_entry, encode_header


def entries(path: Path) -> list[Entry]:
    """Return a record's entries."""
    with path.open("rb") as file:
        return list(RecordReader(file, path.stat().st_size))


def written(walk: Path, to: Path, entries: Iterable[Entry]) -> Path:
    """Write a record that begins as another one and has these entries, and an end; return where."""
    with walk.open("rb") as file:
        data = encode_header(RecordReader(file, walk.stat().st_size).header)
    num_blocks = num_moves = 0
    for entry in entries:
        data += encode_entry(data, entry)
        num_blocks += isinstance(entry, BlockEntry)
        num_moves += isinstance(entry, MoveEntry)
    to.write_bytes(data + encode_entry(data, EndEntry("as told", num_blocks, num_moves)))
    return to


def rewritten(path: Path, to: Path, change: Callable[[Entry], Entry]) -> Path:
    """Write a record again with every entry changed; return where."""
    with path.open("rb") as file:
        reader = RecordReader(file, path.stat().st_size)
        data = encode_header(reader.header)
        for entry in reader:
            data += encode_entry(data, change(entry))
    to.write_bytes(data)
    return to
