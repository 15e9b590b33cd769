"""A log waits for nobody, raises nothing, and says what it dropped, whatever lies behind its descriptor."""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cli.outputs import full, gone, unusable
from worldmove.worker.log_queue import LogQueue

SOON_S = 5.0


def lost(num_lines: int) -> bytes:
    return b"lost %d\n" % num_lines


def until(met: object) -> None:
    """Wait for something to become true."""
    assert callable(met)
    deadline = time.monotonic() + SOON_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Pipe:
    """A pipe of the smallest size."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.size = fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)

    def read(self, num_bytes: int) -> bytes:
        found = b""
        while len(found) < num_bytes:
            found += os.read(self.reader, num_bytes - len(found))
        return found

    def rest(self) -> bytes:
        """Read until nobody writes any more."""
        os.close(self.writer)
        found = b""
        while piece := os.read(self.reader, 65536):
            found += piece
        return found


@pytest.fixture(name="pipe")
def _pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    for descriptor in (pipe.reader, pipe.writer):
        with suppress(OSError):
            os.close(descriptor)


def test_what_is_put_is_written_in_order_and_by_the_end_of_close(pipe: Pipe) -> None:
    queue = LogQueue(pipe.writer, lost=lost)
    for number in range(100):
        queue.put(b"line %d\n" % number)
    queue.close(SOON_S)
    assert pipe.rest().splitlines() == [b"line %d" % number for number in range(100)]
    assert queue.num_dropped == 0


def test_a_pipe_that_nobody_reads_stops_nobody_and_what_it_costs_is_counted_and_said_once_there_is_room(
    pipe: Pipe,
) -> None:
    queue = LogQueue(pipe.writer, lost=lost, room_bytes=64 << 10)
    line = b"x" * 999 + b"\n"
    began = time.monotonic()
    for _ in range(1000):
        queue.put(line)
    queue.put(b"a traceback\n  of three\n  lines" + b"." * (64 << 10) + b"\n")
    assert time.monotonic() - began < SOON_S
    assert 900 < queue.num_dropped < 1003
    num_written = 1003 - queue.num_dropped
    said = pipe.read(num_written * 1000 + len(lost(queue.num_dropped))).splitlines()
    assert said.count(line.strip()) == num_written
    assert [other for other in said if other != line.strip()] == [b"lost %d" % queue.num_dropped]
    queue.put(b"later\n")
    assert pipe.read(6) == b"later\n"


def test_the_end_does_not_wait_for_a_reader_for_longer_than_it_may(pipe: Pipe) -> None:
    queue = LogQueue(pipe.writer, lost=lost)
    queue.put(b"x" * 100_000)
    began = time.monotonic()
    queue.close(0.2)
    assert 0.2 <= time.monotonic() - began < 2


@pytest.mark.parametrize("place", [full, gone])
def test_what_cannot_be_written_is_counted_and_nothing_is_raised(place: object) -> None:
    assert callable(place)
    with place() as descriptor:
        queue = LogQueue(descriptor, lost=lost)
        for _ in range(10):
            queue.put(b"line\n")
        until(lambda: queue.num_dropped == 10)
        queue.close(SOON_S)
        assert queue.num_dropped == 10


def test_a_descriptor_that_was_closed_is_nobodys_wish_to_hear() -> None:
    with unusable() as descriptor:
        queue = LogQueue(descriptor, lost=lost)
        queue.put(b"line\n")
        queue.close(SOON_S)
        assert queue.num_dropped == 0


def test_what_a_full_disk_cost_is_said_once_it_has_room_again(monkeypatch: pytest.MonkeyPatch, pipe: Pipe) -> None:
    has_room = threading.Event()
    write = os.write

    def written(descriptor: int, content: memoryview) -> int:
        if descriptor == pipe.writer and not has_room.is_set():
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, content)

    monkeypatch.setattr("worldmove.worker.log_queue.os.write", written)
    queue = LogQueue(pipe.writer, lost=lost)
    for _ in range(3):
        queue.put(b"in vain\n")
    until(lambda: queue.num_dropped == 3)
    has_room.set()
    queue.put(b"again\n")
    queue.close(SOON_S)
    assert pipe.rest() == b"again\nlost 3\n"


def test_a_pipe_that_does_not_block_gets_every_line_as_well(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer, False)
    queue = LogQueue(pipe.writer, lost=lost)
    for number in range(3000):
        queue.put(b"line %d\n" % number)
    expected = b"".join(b"line %d\n" % number for number in range(3000))
    assert pipe.read(len(expected)) == expected
    queue.close(SOON_S)
    assert queue.num_dropped == 0


def test_an_object_that_logs_its_end_while_a_line_is_put_waits_for_nobody(pipe: Pipe) -> None:
    queue = LogQueue(pipe.writer, lost=lost)

    class Loud(bytes):
        def __len__(self) -> int:  # within ``put``, as a collection there would
            queue.put(b"within\n")
            return super().__len__()

    done = threading.Thread(target=queue.put, args=(Loud(b"around\n"),), daemon=True)
    done.start()
    done.join(SOON_S)
    assert not done.is_alive()
    queue.close(SOON_S)
    assert b"around\n" in pipe.rest()
