"""Files that a command writes: there whole, or not there."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from worldmove.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; at the end it bears its name, and after any failure there is nothing of it.

    Raises UserError where it cannot be written.
    """
    part = partial(path)
    try:
        with part.open("xb") as file:
            yield file
            settle(file)
        part.replace(path)
    except OSError as error:
        raise cannot_write(path, error, "nothing was written") from error
    finally:
        part.unlink(missing_ok=True)


def partial(path: Path) -> Path:
    """Return where a file is while it is written: beside its place, so that renaming it is one step."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def settle(file: BinaryIO) -> None:
    """Have the disk hold what was written."""
    file.flush()
    os.fsync(file.fileno())


def cannot_write(path: Path, error: OSError, left: str) -> UserError:
    """Return the error of a file that cannot be written. ``left``: what is there now."""
    if error.errno in FULL:
        return UserError(f"No space is left for {path}; {left}.", code="no_space")
    return UserError(f"{path} cannot be written ({error.strerror}); {left}.", code="cannot_write")


@contextmanager
def open_file(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Give a file to read, and its size. Raises UserError where it cannot be read."""
    try:
        with path.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).", code="no_file") from error
