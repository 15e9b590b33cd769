"""Shared memory: who may have what, and what is left behind."""

import asyncio
import mmap
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.transport.conformance import SIZE, extent, target
from tests.transport.conftest import OtherProcess
from tests.transport.exporter import pattern
from tests.transport.test_transports import Tokens
from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.transport.descriptors import fetch, map_sealed
from worldmove.transport.shm import SharedMemory, ShmConfig, ShmTicket
from worldmove.worker.threads import OneThread

PYTHON = shutil.which("python3", path="/usr/bin")


@asynccontextmanager
async def shared_memory(path: Path, answer_s: float = 2.0) -> AsyncIterator[SharedMemory]:
    thread = OneThread("copy")
    shared = SharedMemory(config=ShmConfig(path=path, answer_s=answer_s), blocking=thread, tokens=Tokens(0))
    await shared.start()
    try:
        yield shared
    finally:
        await shared.close()
        thread.close()


def source() -> Arena:
    arena = Arena(SIZE, "source")
    arena.buffer[:] = pattern(SIZE)
    return arena


def fetched(path: str, token: bytes, answer_s: float) -> int:
    return asyncio.run(fetch(path, token, answer_s))


def ticket_of(other: OtherProcess) -> ShmTicket:
    return msgspec.msgpack.decode(bytes.fromhex(other.ask("export")), type=ShmTicket)


def test_who_gets_the_descriptor_cannot_map_it_for_writing(other_process: OtherProcess) -> None:
    ticket = ticket_of(other_process)
    descriptor = fetched(ticket.path, ticket.token, 2.0)
    with pytest.raises(PermissionError):
        mmap.mmap(descriptor, SIZE, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(PermissionError):
        os.write(descriptor, b"written through the descriptor")
    with pytest.raises(PermissionError):
        os.ftruncate(descriptor, 0)
    os.close(descriptor)


def test_a_map_cannot_be_written(other_process: OtherProcess) -> None:
    ticket = ticket_of(other_process)
    mapping = map_sealed(fetched(ticket.path, ticket.token, 2.0), ticket.size)
    with pytest.raises(TypeError):
        mapping[0] = 1
    mapping.close()


@pytest.mark.parametrize("size", [SIZE - 4096, SIZE + 4096])
def test_memory_of_another_size_than_the_ticket_says_is_refused(other_process: OtherProcess, size: int) -> None:
    ticket = ticket_of(other_process)
    with pytest.raises(TransportError, match=f"has {SIZE} bytes, not {size}"):
        map_sealed(fetched(ticket.path, ticket.token, 2.0), size)


def test_memory_that_is_not_sealed_is_refused() -> None:
    """Its owner could shrink it, and reading what is gone would kill the reader."""
    descriptor = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, SIZE)
    with pytest.raises(TransportError, match="not sealed"):
        map_sealed(descriptor, SIZE)


def test_a_wrong_token_gets_nothing(other_process: OtherProcess) -> None:
    ticket = ticket_of(other_process)
    for wrong in (bytes(32), ticket.token[:31], ticket.token + b"\0", b"x"):
        with pytest.raises(TransportError, match="lets nothing be read"):
            fetched(ticket.path, wrong, 2.0)


def test_the_socket_is_its_owners_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "s"):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        assert not (tmp_path / "s").exists()

    asyncio.run(story())


@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON, reason="needs root, and a Python that everybody may run")
def test_another_user_gets_nothing_though_it_knows_the_token(tmp_path: Path) -> None:
    ask = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "s.connect(sys.argv[1])\n"
        "try:\n"
        "    s.sendall(bytes.fromhex(sys.argv[2]))\n"
        "    print(len(socket.recv_fds(s, 1, 1)[1]))\n"
        "except OSError:\n"
        "    print('the door was shut')\n"
    )

    async def story() -> str:
        path = Path("/tmp") / f"worldmove-test-{os.getpid()}.sock"
        async with shared_memory(path) as shared:
            path.chmod(0o777)  # on purpose, so that only the kernel's word is left in the way
            ticket = msgspec.msgpack.decode(await shared.export(source()), type=ShmTicket)
            process = await asyncio.create_subprocess_exec(
                *(PYTHON or "", "-c", ask, ticket.path, ticket.token.hex()),
                user=65534,
                stdout=subprocess.PIPE,
            )
            out, _ = await process.communicate()
            return out.decode().strip()

    assert asyncio.run(story()) in ("0", "the door was shut")


def test_an_asker_that_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "s", answer_s=5.0) as shared:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
                silent.connect(str(tmp_path / "s"))
                async with asyncio.timeout(2.0):
                    channel = await shared.connect(await shared.export(source()))
                await channel.close()

    asyncio.run(story())


def test_a_source_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as deaf:
        deaf.bind(str(tmp_path / "deaf"))
        deaf.listen()
        with pytest.raises(TransportError, match="no answer"):
            fetched(str(tmp_path / "deaf"), bytes(32), 0.05)


def test_nobody_at_the_socket_is_an_error_of_the_path(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="no answer"):
        fetched(str(tmp_path / "nobody"), bytes(32), 0.05)


def test_a_socket_left_by_a_killed_process_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(tmp_path / "s"))

    async def story() -> None:
        async with shared_memory(tmp_path / "s") as shared:
            await (await shared.connect(await shared.export(source()))).close()

    asyncio.run(story())


def test_a_socket_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "nowhere" / "s"):
            pass

    with pytest.raises(TransportError, match="cannot be listened at"):
        asyncio.run(story())


def test_a_name_too_long_for_a_socket_is_said() -> None:
    with pytest.raises(TransportError, match="at most 100 characters"):
        ShmConfig(path=Path("/" + "x" * 100))


def test_nothing_is_exported_before_the_start_or_after_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with shared_memory(tmp_path / "s") as shared:
            pass
        with pytest.raises(TransportError, match="not started, or is closed"):
            await shared.export(source())

    asyncio.run(story())


def test_what_is_mapped_outlives_its_source(tmp_path: Path) -> None:
    other = OtherProcess("shm", str(tmp_path / "other.sock"))
    ticket = bytes.fromhex(other.ask("export"))

    async def story() -> None:
        async with shared_memory(tmp_path / "s") as shared:
            channel = await shared.connect(ticket)
            other.kill()
            into = target()
            await channel.pull([extent(0, SIZE)], into.buffer)
            assert bytes(into.buffer) == pattern(SIZE)
            await channel.close()

    asyncio.run(story())


def test_channels_leave_neither_descriptors_nor_maps_behind(other_process: OtherProcess, tmp_path: Path) -> None:
    def held() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        return len(os.listdir("/proc/self/fd")), maps.count("memfd:exported")

    async def story() -> None:
        async with shared_memory(tmp_path / "s") as shared:
            ticket = bytes.fromhex(other_process.ask("export"))
            await (await shared.connect(ticket)).close()
            into = target()
            before = held()
            channels = [await shared.connect(ticket) for _ in range(20)]
            assert held() == (before[0] + 20, before[1] + 20)
            for channel in channels:
                await channel.pull([extent(0, 4096)], into.buffer)
                await channel.close()
            assert held() == before

    asyncio.run(story())
