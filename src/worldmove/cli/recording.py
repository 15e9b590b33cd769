"""A record on its way into a file: whatever ends it, the file is a whole record of so many blocks."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from worldmove.cli.files import beside, cannot_write, settle
from worldmove.cli.no_answer import NoAnswer
from worldmove.errors import FileRefused, WorldMoveError
from worldmove.serve.record_entries import EndEntry
from worldmove.serve.record_file import Ending, Progress, RecordReader, encode_entry
from worldmove.state.checked_frame import CHECK


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why nothing more came. ``error``: where that was not meant."""

    why: str = "the server's answer ended early"
    error: WorldMoveError | OSError | None = None


def record_to(path: Path, pieces: Iterator[bytes]) -> Progress:
    """Write a record as it comes, until it ends or Ctrl-C, or SIGTERM. While it is written it lies beside its place.

    Raises UserError where it cannot be written, NoAnswer where the server went away; what had come by then is
    kept under the file's name. There is no file where that is less than a record's header, or none; where it is none,
    raises FileRefused.
    """
    with beside(path) as part, part.open("x+b", buffering=0) as file:
        stop = _copy(pieces, file)
        try:
            progress = _complete(file, stop.why)
        except FileRefused:
            if isinstance(stop.error, NoAnswer):  # the line broke, and not a file
                raise stop.error from None
            raise
    if isinstance(stop.error, OSError):
        raise cannot_write(path, stop.error, f"it has the first {progress.num_blocks} blocks") from stop.error
    if stop.error is not None:
        raise stop.error
    return progress


def _copy(pieces: Iterator[bytes], file: FileIO) -> Stop:
    try:
        for piece in pieces:
            try:
                _write(file, piece)
            except OSError as error:
                return Stop(why="no space was left", error=error)
    except KeyboardInterrupt:
        return Stop(why="it was stopped")
    except NoAnswer as error:
        return Stop(why="the server went away", error=error)
    return Stop()


def _write(file: FileIO, piece: bytes) -> None:
    """Write it all, at once: what has come is there if this process is killed."""
    left = memoryview(piece)
    while left:
        left = left[file.write(left) :]


def _complete(file: FileIO, why: str) -> Progress:
    """Cut what was written to its last whole entry, and end it. Raises FileRefused where there is no header."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    reader = RecordReader(file, size)
    for _ in reader:
        pass
    progress = reader.progress
    if progress.ending is not Ending.WHOLE:
        file.seek(progress.num_bytes - CHECK.size)
        end = encode_entry(file.read(CHECK.size), EndEntry(why, progress.num_blocks, progress.num_moves))
        file.truncate(progress.num_bytes)
        progress.why = why
        with suppress(OSError):  # a record without its end is one all the same
            file.seek(progress.num_bytes)
            _write(file, end)
            progress.num_bytes += len(end)
    settle(file)
    return progress
