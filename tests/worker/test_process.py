"""A worker's process at its edges."""

import io

from worldmove.worker.process_log import Unbreakable


class Gone(io.StringIO):
    """A stream whose reader is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise OSError(5, "Input/output error")


def test_a_log_whose_reader_is_gone_ends_nothing() -> None:
    stream = Unbreakable(Gone())
    assert stream.write("line") == 4
    stream.flush()


def test_a_log_that_is_read_gets_every_line() -> None:
    under = io.StringIO()
    stream = Unbreakable(under)
    stream.write("a\n")
    stream.flush()
    assert under.getvalue() == "a\n"
