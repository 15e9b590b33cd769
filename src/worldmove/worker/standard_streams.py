"""Standard output and error of a process: whatever lies behind them, writing raises nothing into who writes.

What could not be written is noted: a command says so at its end, and by its exit status. A log's is set aside: a thread
writes it (``log_queue``), and nobody waits for a reader. A command's data is set apart: nobody else writes among it.
"""

import io
import os
import sys
from typing import Any, TextIO, cast

from worldmove.worker.log_queue import LogQueue, write_all

STDOUT, STDERR = 1, 2


class Kept(io.RawIOBase):
    """A descriptor, written to until that fails."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: OSError | None = None
        """Why not all of it was written."""
        self.aside: LogQueue | None = None
        """Where it goes instead, from now on."""

    def write(self, content: Any, /) -> int:
        """Write it all, or note why not; it is taken at once, as a buffer takes it."""
        piece = bytes(content)
        if self.aside is not None:
            self.aside.put(piece)
        elif self.failure is None:
            try:
                write_all(self._descriptor, piece)
            except OSError as error:
                self.failure = error
        return len(piece)

    def move(self) -> None:
        """Go on by a number of its own: the one that everybody knows leads elsewhere from now on."""
        self._descriptor = os.dup(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True


def take_over() -> None:
    """Have this process write to its standard streams by these, and whoever it starts find them open."""
    _open_all()
    sys.stdout, sys.stderr = text_to(STDOUT, sys.stdout), text_to(STDERR, sys.stderr)


def set_apart(data: TextIO) -> None:
    """Leave standard output to this stream: what else is written to it goes to standard error from now on.

    An engine may print, or a library below it, in C, or a process that it has started. Idempotent.
    """
    data.flush()
    kept = kept_in(data)
    if kept is not None and kept.fileno() == STDOUT:
        kept.move()
        os.dup2(STDERR, STDOUT)
    sys.stdout = sys.stderr


def text_to(descriptor: int, before: TextIO | None = None) -> io.TextIOWrapper:
    """Return a stream over a descriptor, with the encoding of the one that it comes after."""
    # What an encoding lacks is spelled out: a name that cannot be written is no failure of what was done.
    encoding = getattr(before, "encoding", None) or "utf-8"
    kept = cast("io.BufferedWriter", Kept(descriptor))
    return io.TextIOWrapper(kept, encoding=encoding, errors="backslashreplace", line_buffering=True)


def kept_in(stream: TextIO) -> Kept | None:
    """Return what lies below a stream, where it is one of these."""
    found = getattr(stream, "buffer", None)
    return found if isinstance(found, Kept) else None


def written_out(stream: TextIO, within_s: float) -> None:
    """Wait for what was set aside to be written, for so long at most."""
    kept = kept_in(stream)
    if kept is not None and kept.aside is not None:
        stream.flush()
        kept.aside.close(within_s)


def _open_all() -> None:
    """See that no file or socket gets the number of a stream that was closed: what is said there would be its content.

    What stands in for one cannot be used, as a closed one could not.
    """
    for number in (0, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            stand_in = os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
            os.set_inheritable(stand_in, True)  # noqa: FBT003  (it takes no keyword)
