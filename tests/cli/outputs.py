"""Places that standard output or error may lead to, and that take nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full() -> Iterator[int]:
    """A disk without room."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@contextmanager
def gone() -> Iterator[int]:
    """A pipe whose reader has closed it."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@contextmanager
def unusable() -> Iterator[int]:
    """What stands in for a descriptor that was closed: it is not open to be written."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)
