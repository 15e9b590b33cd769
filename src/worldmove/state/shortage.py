"""Memory that cannot be had, in the many words in which that is said, told as one error of ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from worldmove.errors import NoMemory

SAID = ("out of memory", "can't allocate memory", "cannot allocate memory")
"""What torch, and a device's driver through it, say where they raise a RuntimeError."""


def is_shortage(error: BaseException) -> bool:
    """Say whether an error means that there was no memory: the host's, or a device's."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error).lower() for said in SAID)


@contextmanager
def shortage_told() -> Iterator[None]:
    """Do what takes memory. Raises NoMemory where there is none, and any other error as it is."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        raise NoMemory(str(error) or type(error).__name__) from error
