"""A process that may open no more files, at either end of a path: the path says so at once, and keeps nothing."""

import asyncio
import os
import resource
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.transport.conftest import OtherProcess
from tests.transport.test_transports import Tokens
from worldmove.errors import NoDescriptors
from worldmove.transport.base import Transport
from worldmove.transport.descriptors import fetch
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.staged import StagedTicket
from worldmove.transport.tcp import Tcp, TcpConfig, TcpTicket
from worldmove.transport.tickets import read_ticket
from worldmove.worker.threads import OneThread

SOON_S = 1.5
"""Less than a path waits for an answer."""


def num_descriptors(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def at_rest(pid: int) -> int:
    """How many descriptors another process has once it has closed what it was to close."""
    found = [num_descriptors(pid)]
    while len(found) < 10 or len(set(found[-10:])) > 1:
        time.sleep(0.03)
        found.append(num_descriptors(pid))
    return found[-1]


@contextmanager
def left_here(num: int) -> Iterator[None]:
    """Let this process open so many files more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, before[1]))
    held: list[int] = []
    try:
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        for _ in range(num):
            os.close(held.pop())
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def none_left_at(pid: int) -> Iterator[None]:
    """Let another process open no more files."""
    taken = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    first_free = next(number for number in range(len(taken) + 1) if number not in taken)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (first_free, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def made(kind: str, folder: Path, thread: OneThread) -> Transport:
    if kind == "shm":
        return SharedMemory(config=ShmConfig(path=folder / "here"), blocking=thread, tokens=Tokens(5))
    return Tcp(config=TcpConfig(), tokens=Tokens(5), blocking=thread)


async def tried(kind: str, folder: Path, ticket: bytes, num_left: int | None) -> str:
    """Connect with so many descriptors left; None: as many as there are. Return what was said where that failed."""
    thread = OneThread("limit")
    transport = made(kind, folder, thread)
    await thread(lambda: None)
    try:
        if kind == "staged":  # as its destination begins, which goes on with a device
            wanted = read_ticket(ticket, StagedTicket, "a staged path")
            os.close(await fetch(wanted.path, wanted.token, 5.0))
            return ""
        if num_left is None:
            return await _connected(transport, ticket)
        with left_here(num_left):
            return await _connected(transport, ticket)
    except NoDescriptors as error:
        return str(error)
    finally:
        thread.close()


async def _connected(transport: Transport, ticket: bytes) -> str:
    begun, before = time.monotonic(), num_descriptors_without_opening()
    try:
        channel = await transport.connect(ticket)
    except NoDescriptors:
        assert time.monotonic() - begun < SOON_S
        assert num_descriptors_without_opening() == before
        raise
    await channel.close()
    return ""


def num_descriptors_without_opening() -> int:
    """How many there are below the limit: a listing of a folder would need one itself."""
    found = 0
    for descriptor in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0] if _is_low() else 256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        found += 1
    return found


def _is_low() -> bool:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 4096


@pytest.mark.parametrize("kind", ["shm", "tcp"])
def test_a_destination_at_its_limit_is_told_so_whichever_descriptor_is_the_one_too_many(
    kind: str, others: Mapping[str, OtherProcess], tmp_path: Path
) -> None:
    ticket = bytes.fromhex(others[kind].ask("export"))
    said = [asyncio.run(tried(kind, tmp_path, ticket, left)) for left in range(5)]
    assert said[0]
    assert said[-1] == ""
    assert all("open" in sentence for sentence in said if sentence)
    assert said == sorted(said, key=lambda sentence: not sentence)  # with one more it is never worse
    assert len([sentence for sentence in said if sentence]) == {"shm": 2, "tcp": 1}[kind]


@pytest.mark.parametrize("kind", ["shm", "tcp", "staged"])
def test_whoever_asks_a_source_at_its_limit_is_told_so_and_is_served_when_it_has_one(
    kind: str, others: Mapping[str, OtherProcess], tmp_path: Path
) -> None:
    other = others[kind]
    ticket = bytes.fromhex(other.ask("export"))
    assert asyncio.run(tried(kind, tmp_path, ticket, None)) == ""  # what is kept for the next one is there now
    before = at_rest(other.pid)
    with none_left_at(other.pid):
        for _ in range(3):
            assert "its source may open no more files" in asyncio.run(tried(kind, tmp_path, ticket, None))
    assert asyncio.run(tried(kind, tmp_path, ticket, None)) == ""
    assert at_rest(other.pid) == before


def test_one_who_connects_to_a_source_at_its_limit_and_says_nothing_holds_nobody_up_for_long(
    others: Mapping[str, OtherProcess], tmp_path: Path
) -> None:
    other = others["tcp"]
    ticket = bytes.fromhex(other.ask("export"))
    wanted = read_ticket(ticket, TcpTicket, "TCP")
    with none_left_at(other.pid), socket.create_connection((wanted.host, wanted.port)):
        assert "its source may open no more files" in asyncio.run(tried("tcp", tmp_path, ticket, None))
