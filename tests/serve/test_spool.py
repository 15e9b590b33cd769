"""Saved worlds on their way through the server's folder."""

import asyncio
import gc

import pytest

from worldmove.errors import UserError
from worldmove.serve.spool import Pieces, Spool


def test_whoever_writes_a_file_that_nobody_waits_for_any_more_cannot() -> None:
    spool = Spool()
    with spool.file() as file:
        file.path.write_bytes(b"in time")
    with pytest.raises(FileNotFoundError):
        file.path.open("xb")
    with spool.file() as again:
        again.path.write_bytes(b"another")
        assert again.path != file.path
    spool.close()


async def _all(pieces: Pieces) -> bytes:
    return b"".join([piece async for piece in pieces])


def test_no_more_files_are_there_at_one_time_than_there_may_be_read_or_not() -> None:
    """Each is as large as a world, and those who read it as slowly as they like are many."""
    spool = Spool(most_files=2)
    sent: list[Pieces] = []
    for _ in range(2):
        with spool.file() as file:
            file.path.write_bytes(b"world")
            sent.append(file.send(b"header "))
    with pytest.raises(UserError, match="try again"), spool.file():
        pass
    assert asyncio.run(_all(sent[0])) == b"header world"
    with spool.file(), pytest.raises(UserError, match="try again"), spool.file():
        pass
    sent.clear()  # a client that has vanished
    gc.collect()
    with spool.file(), spool.file():
        pass
    with pytest.raises(ZeroDivisionError), spool.file():
        raise ZeroDivisionError
    with spool.file(), spool.file():
        pass
    spool.close()
