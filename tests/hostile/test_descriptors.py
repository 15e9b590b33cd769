"""The socket at which a worker's memory is had: noise, crowds and false sources are one error, and leave nothing."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.shapes import damaged
from tests.transport.conformance import SIZE
from tests.transport.test_shm import shared_memory, source
from worldmove.errors import TransportError
from worldmove.transport.descriptors import fetch, map_sealed
from worldmove.transport.shm import MAX_ASKERS


def num_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def asker(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(1.0)
    made.connect(str(path))
    return made


def test_a_crowd_that_says_nothing_takes_few_descriptors_and_is_gone_soon(tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "s", answer_s=0.3) as shared:
            ticket = await shared.export(source())
            before = num_descriptors()
            crowd = []
            for _ in range(MAX_ASKERS + 30):
                crowd.append(asker(tmp_path / "s"))
                await asyncio.sleep(0.001)
            assert num_descriptors() - before - len(crowd) <= MAX_ASKERS
            await asyncio.sleep(1.0)
            for one in crowd:
                one.close()
            channel = await shared.connect(ticket)
            await channel.close()
            assert num_descriptors() <= before

    asyncio.run(story())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(said=st.lists(st.binary(min_size=1, max_size=300), max_size=3))
def test_noise_gets_no_descriptor_and_the_next_one_does(said: list[bytes], tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "s") as shared:
            ticket = await shared.export(source())
            with asker(tmp_path / "s") as noisy:
                for part in said:
                    try:
                        noisy.sendall(part)
                    except OSError:
                        break  # it was sent away already
                noisy.shutdown(socket.SHUT_WR)
                noisy.settimeout(0)
                await asyncio.sleep(0.002)
                try:
                    _, descriptors, _, _ = socket.recv_fds(noisy, 1, 4)
                except OSError:
                    descriptors = []
                assert descriptors == []
            channel = await shared.connect(ticket)
            await channel.close()

    asyncio.run(story())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_ticket_that_was_changed_is_one_error(data: st.DataObject, tmp_path: Path) -> None:
    whole = msgspec.msgpack.encode([str(tmp_path / "nobody"), bytes(32), SIZE])
    ticket = data.draw(damaged(whole) | st.binary(max_size=600))

    async def story() -> None:
        async with shared_memory(tmp_path / "s", answer_s=0.2) as shared:
            with pytest.raises(TransportError):
                await shared.connect(ticket)

    asyncio.run(story())


def _pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


FALSE = {
    "a folder": lambda: os.open("/", os.O_RDONLY),
    "a pipe": _pipe,
    "what the kernel makes up": lambda: os.open("/dev/zero", os.O_RDONLY),
    "memory that is not sealed": lambda: os.memfd_create("x", os.MFD_ALLOW_SEALING),
}


@pytest.mark.parametrize("make", FALSE.values(), ids=list(FALSE))
@pytest.mark.parametrize("num", [1, 4])
def test_a_source_that_gives_something_else_is_refused_and_nothing_is_kept(
    make: Callable[[], int], num: int, tmp_path: Path
) -> None:
    path = tmp_path / "false"
    before = num_descriptors()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(path))
        listening.listen()

        def give() -> None:
            joined, _ = listening.accept()
            given_away = [make() for _ in range(num)]
            with joined:
                joined.recv(64)
                socket.send_fds(joined, [b"\0"], given_away)
            for descriptor in given_away:
                os.close(descriptor)

        giving = threading.Thread(target=give)
        giving.start()
        with pytest.raises(TransportError):
            map_sealed(asyncio.run(fetch(str(path), bytes(32), 2.0)), SIZE)
        giving.join()
    assert num_descriptors() == before
