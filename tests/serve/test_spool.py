"""Saved worlds on their way through the server's folder."""

import pytest

from worldmove.serve.spool import Spool


def test_whoever_writes_a_file_that_nobody_waits_for_any_more_cannot() -> None:
    spool = Spool()
    with spool.file() as path:
        path.write_bytes(b"in time")
    with pytest.raises(FileNotFoundError):
        path.open("xb")
    with spool.file() as again:
        again.write_bytes(b"another")
        assert again != path
    spool.close()
