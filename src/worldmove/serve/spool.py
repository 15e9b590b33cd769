"""The edge that keeps saved worlds on this host's disk while they pass between a worker and a client.

One private folder, made when it is first needed and removed at the end, or by the next server of the same state
folder: a link there says which it is, and worlds do not fill the disk that has the ledger. A file lives for one
request.
"""

import asyncio
import errno
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import BinaryIO, Literal, Self

from worldmove.errors import UserError
from worldmove.serve.limits import LEAST_BYTES_PER_S

PIECE_BYTES = 1 << 20
PREFIX = "worldmove-saved-"
SETTLES_S = 10.0
"""How long a client is not judged by its rate."""
MAX_PATH_CHARS = 2048
"""Of a text in a message to a worker."""
MOST_FILES = 8
"""At one time. Each may be as large as a slot, and is there, or set aside in a worker, until a client has it."""


class Spool:
    """A folder of short-lived files."""

    def __init__(self, link: Path | None = None, most_files: int = MOST_FILES) -> None:
        """``link``: where the folder is told of, in a state folder that is held; what it tells of now is removed."""
        if link is not None:
            clear(link)
        self._link = link
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._num_free = most_files
        self._sending = weakref.WeakSet[Pieces]()

    @contextmanager
    def file(self) -> Iterator["SpoolFile"]:
        """Give a file that is not there yet, and remove its name at the end. Raises UserError where there are too many.

        Where all places are taken, whoever reads more slowly than a client should is cut off for one.
        It is alone in a folder, which goes too: whoever writes it later, when nobody waits any more, cannot.
        """
        if not self._num_free:
            self._cut_slowest()
        if not self._num_free:
            why = "As many saved worlds are on their way as may be at one time; try again in a moment."
            raise UserError(why, code="busy", status=503)
        self._num_free -= 1
        file: SpoolFile | None = None
        try:
            file = self._made()
            yield file
        finally:
            if file is not None:
                shutil.rmtree(file.path.parent, ignore_errors=True)  # somebody may have cleaned it away
            if file is None or not file.is_sent:
                self._give_back()

    def _made(self) -> "SpoolFile":
        with _space():
            if self._folder is None or not Path(self._folder.name).is_dir():  # what is old is taken from there at times
                self.close()
                self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
                if self._link is not None:
                    with suppress(OSError):  # whatever is in its place: only who comes after a kill would want it
                        self._link.symlink_to(self._folder.name)
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        return SpoolFile(_sayable(folder / "world.saved"), self._give_back, self._sending)

    def _cut_slowest(self) -> None:
        """Cut whoever reads most slowly, if that is too slow: nobody keeps others waiting by that."""
        slowest = min(self._sending, key=lambda pieces: pieces.bytes_per_s(), default=None)
        if slowest is not None and slowest.bytes_per_s() < LEAST_BYTES_PER_S:
            slowest.cut()

    def _give_back(self) -> None:
        self._num_free += 1

    async def write(self, path: Path, parts: AsyncIterator[bytes], num_bytes: int) -> None:
        """Write what comes, which is to be so many bytes. Raises UserError: another number of them, no space."""
        written = 0
        with _opened(path, "xb") as file:
            async for part in parts:
                written += len(part)
                if written > num_bytes:
                    break
                with _space():
                    await asyncio.to_thread(file.write, part)
            with _space():
                file.flush()
        if written != num_bytes:
            why = f"The request says {num_bytes:,} bytes and has {'more' if written > num_bytes else f'{written:,}'}."
            raise UserError(why, code="bad_file", status=422)

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        if self._link is not None and self._link.is_symlink():
            with suppress(OSError):
                self._link.unlink()


class SpoolFile:
    """One file of a spool: where it is, and its place among those that there may be."""

    def __init__(self, path: Path, give_back: Callable[[], None], sending: "weakref.WeakSet[Pieces]") -> None:
        self.path = path
        self._sending = sending
        self.is_sent = False
        """Its place is its pieces' to give back."""
        self._give_back = give_back

    def num_bytes(self) -> int:
        """Return how many bytes it has; a file that is not there has none."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def open(self) -> BinaryIO:
        """Return it as it is read. Raises UserError where somebody has cleaned it away."""
        return _opened(self.path, "rb")

    def send(self, header: bytes) -> "Pieces":
        """Return what is sent of it: a header, and all of it. It keeps its place until they are gone.

        Raises UserError where somebody has cleaned it away.
        """
        pieces = Pieces(header, self.open(), self._give_back)
        self._sending.add(pieces)
        self.is_sent = True
        return pieces


class CutOffError(Exception):
    """Nobody may read on: what was sent is not whole, and its connection ends."""


class Pieces:
    """A header, then a file's bytes. The file is open, and goes with its name and with this object, read or not."""

    def __init__(self, header: bytes, file: BinaryIO, on_end: Callable[[], None]) -> None:
        """``on_end`` is called once: when all is read, or when this object is gone."""
        self._header = header
        self._file = file
        self._begun_at = time.monotonic()
        self._num_read = 0
        self._end = weakref.finalize(self, _let_go, file, on_end)  # of a client that vanishes nobody reads the end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        header, self._header = self._header, b""
        if not self._end.alive:
            raise CutOffError
        try:
            part = header or await asyncio.to_thread(self._file.read, PIECE_BYTES)
        except ValueError as error:  # it was cut between two looks: the file is closed
            if self._end.alive:
                raise
            raise CutOffError from error
        if not part:
            self._end()
            raise StopAsyncIteration
        self._num_read += len(part)
        return part

    def bytes_per_s(self) -> float:
        """How fast it was read until now; infinite at first, and once it is over."""
        took_s = time.monotonic() - self._begun_at
        return self._num_read / took_s if took_s > SETTLES_S and self._end.alive else inf

    def cut(self) -> None:
        """Let its place go: who reads it is cut off."""
        self._end()


def _let_go(file: BinaryIO, on_end: Callable[[], None]) -> None:
    file.close()
    on_end()


def clear(link: Path) -> None:
    """Remove what a server that was killed has left of saved worlds. Does nothing where there is nothing."""
    if not link.is_symlink():
        return
    with suppress(OSError):
        folder = link.readlink()
        if folder.name.startswith(PREFIX) and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
        link.unlink()


def _opened(path: Path, mode: Literal["rb", "xb"]) -> BinaryIO:
    with _space():
        return path.open(mode)


def _sayable(path: Path) -> Path:
    """Return a path that a worker can be told. Raises UserError for one that would end its link."""
    if len(str(path)) > MAX_PATH_CHARS or str(path).encode(errors="replace") != os.fsencode(path):
        why = "The server's TMPDIR has a name that is no text, or too long for a worker to be told; give it another."
        raise UserError(why, code="cannot_write", status=507)
    return path


@contextmanager
def _space() -> Iterator[None]:
    """Say of a file or a folder that cannot be had what the server lacks for it."""
    try:
        yield
    except OSError as error:
        where, what = tempfile.tempdir or "TMPDIR", error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            why = f"No space is left for the saved world in the server's {where} ({what})."
            raise UserError(why, code="no_space", status=507) from error
        why = f"The saved world cannot be kept in the server's {where} ({what})."
        raise UserError(why, code="cannot_write", status=507) from error
