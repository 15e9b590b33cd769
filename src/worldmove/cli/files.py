"""Files that a command writes: there whole, or not there."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from worldmove.cli.termination import heard_as_interrupt
from worldmove.errors import UserError

MAX_LINKS = 40
"""As many as the system follows."""
_DESCRIPTORS = re.compile(r"/proc/\d+/(task/\d+/)?fd")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; at the end it bears its name, and after any failure there is nothing of it.

    Raises UserError where it cannot be written.
    """
    with beside(path) as part, part.open("xb") as file:
        yield file
        settle(file)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give where a file is while it is written: beside its place, so that renaming it in the end is one step.

    Told to end meanwhile, by whichever signal that can be heard, there is nothing of it beside its place either.
    Raises UserError where it cannot be written, or the path has no file's name; then there is nothing of it.
    """
    if not path.name:
        raise UserError(f"{path} is no name of a file.", code="cannot_write")
    path = _place_of(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with heard_as_interrupt():
        try:
            yield part
            part.replace(path)
        except OSError as error:
            raise cannot_write(path, error, "nothing was written") from error
        finally:
            with suppress(OSError):  # whatever is wrong with its name was said
                part.unlink()


def _place_of(path: Path) -> Path:
    """Return where a file of this name is to lie: behind links. Raises UserError where something else has its name.

    Renaming a file to it would take its place: root would lose /dev/null so. A descriptor (/dev/stdout) is none either:
    what lies behind it by now, standard error's log say, would be replaced.
    """
    try:
        if _leads_to_a_descriptor(path):
            why = "it is a descriptor of a process, and no file"
            raise UserError(f"{path} cannot be written ({why}); nothing was written.", code="cannot_write")
        place = path.resolve() if path.is_symlink() else path
        is_file = not place.exists() or place.is_file()
    except RuntimeError as error:  # links that lead to each other, before Python 3.13
        raise UserError(f"{path} cannot be written ({error}); nothing was written.", code="cannot_write") from error
    except OSError as error:
        raise cannot_write(path, error, "nothing was written") from error
    if not is_file:
        raise UserError(f"{path} cannot be written (it is no file); nothing was written.", code="cannot_write")
    return place


def _leads_to_a_descriptor(path: Path) -> bool:
    """Whether one of the links that a path consists of lies in a process's folder of descriptors."""
    for _ in range(MAX_LINKS):
        if _DESCRIPTORS.fullmatch(str(path.parent.resolve())):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False  # whoever opens it is told


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
    """Give a file to read, and its size. Raises UserError where it cannot be read, or is a pipe or a device."""
    try:
        # Without waiting: nobody may ever write to a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UserError(f"{path} is no regular file.", code="no_file")
            yield file, found.st_size
    except ValueError as error:
        raise UserError(f"{path} is no name of a file.", code="no_file") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).", code="no_file") from error
