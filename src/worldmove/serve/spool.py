"""The edge that keeps saved worlds on this host's disk while they pass between a worker and a client.

One private folder, made when it is first needed and removed at the end. A file lives for one request.
"""

import asyncio
import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from worldmove.errors import UserError

PIECE_BYTES = 1 << 20


class Spool:
    """A folder of short-lived files."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Give the path of a file that is not there yet, and remove whatever is there at the end.

        It is alone in a folder, which goes too: whoever writes it later, when nobody waits any more, cannot.
        """
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="worldmove-saved-")
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        try:
            yield folder / "world.saved"
        finally:
            shutil.rmtree(folder)

    async def write(self, path: Path, parts: AsyncIterator[bytes], num_bytes: int) -> None:
        """Write what comes, which is to be so many bytes. Raises UserError: another number of them, no space."""
        written = 0
        with path.open("xb") as file:
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


class Pieces:
    """A header, then a file's bytes. The file is open, and goes with its name and with this object, read or not."""

    def __init__(self, header: bytes, path: Path) -> None:
        self._header = header
        self._file = path.open("rb")
        weakref.finalize(self, self._file.close)  # of a client that vanishes nobody reads the end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        header, self._header = self._header, b""
        part = header or await asyncio.to_thread(self._file.read, PIECE_BYTES)
        if not part:
            self._file.close()
            raise StopAsyncIteration
        return part


@contextmanager
def _space() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        where = tempfile.gettempdir()
        why = f"No space is left for the saved world in the server's {where} ({os.strerror(error.errno)})."
        raise UserError(why, code="no_space", status=507) from error
