"""Descriptors that cannot be had, told apart from a path that broke: that comes back, and they do not."""

import errno
import os
from contextlib import suppress

from worldmove.errors import NoDescriptors, TransportError

AT_ITS_LIMIT = (errno.EMFILE, errno.ENFILE)
HERE = "this process may open no more files"
THERE = "its source may open no more files"
FULL = b"\1"
"""What a source at its limit answers over a unix socket: no other answer of a path of ours is this."""


class SpareDescriptor:
    """One that is kept for whoever is to be told that there is none."""

    def __init__(self) -> None:
        self._descriptor = -1

    def take(self) -> None:
        """Have one, if one can be had. Idempotent."""
        if self._descriptor < 0:
            with suppress(OSError):
                self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def release(self) -> None:
        """Let it go. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def unopened(error: OSError, said: str) -> TransportError:
    """Return the error of a path that could not be opened."""
    kind = NoDescriptors if error.errno in AT_ITS_LIMIT else TransportError
    return kind(f"{said}: {error}")
