"""The conformance suite over every path."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.transport.conformance import SIZE, SUITE, Bench
from tests.transport.conftest import OtherProcess
from tests.transport.exporter import pattern
from worldmove.state.arena import Arena
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.wrappers import Throttled
from worldmove.worker.threads import OneThread


class Tokens:
    """Different tokens, the same in every run."""

    def __init__(self, first: int) -> None:
        self._next = first

    def __call__(self) -> bytes:
        self._next += 1
        return self._next.to_bytes(32, "big")


def here(transport: Transport) -> Bench:
    """A bench whose source is in this process."""
    arena = Arena(SIZE, "source")
    arena.buffer[:] = pattern(SIZE)
    tickets: list[bytes] = []

    async def export() -> bytes:
        tickets.append(await transport.export(arena))
        return tickets[-1]

    async def withdraw() -> None:
        await transport.withdraw(tickets[-1])

    async def write(offset: int, data: bytes) -> None:
        arena.buffer[offset : offset + len(data)] = data

    return Bench(transport=transport, export=export, withdraw=withdraw, write=write)


def there(transport: Transport, other: OtherProcess) -> Bench:
    """A bench whose source is in the other process."""

    async def export() -> bytes:
        other.ask("write 1000 " + pattern(SIZE)[1000:1100].hex())
        return bytes.fromhex(other.ask("export"))

    async def withdraw() -> None:
        other.ask("withdraw")

    async def write(offset: int, data: bytes) -> None:
        other.ask(f"write {offset} {data.hex()}")

    return Bench(transport=transport, export=export, withdraw=withdraw, write=write)


@asynccontextmanager
async def bench_of(path: str, folder: Path, other: OtherProcess) -> AsyncIterator[Bench]:
    thread = OneThread("copy")
    shared = SharedMemory(config=ShmConfig(path=folder / "own.sock"), blocking=thread, tokens=Tokens(1 << 40))
    inner: Transport = Loopback(blocking=thread, tokens=Tokens(0)) if "loopback" in path else shared
    transport = Throttled(inner, rate_bytes_per_s=1e9, piece_bytes=50_000) if "throttled" in path else inner
    await shared.start()
    try:
        yield there(transport, other) if "two processes" in path else here(transport)
    finally:
        await shared.close()
        thread.close()


PATHS = (
    "loopback",
    "throttled loopback",
    "shared memory",
    "shared memory, two processes",
    "throttled shared memory, two processes",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("behaviour", SUITE, ids=lambda behaviour: behaviour.__name__)
def test_a_path(
    behaviour: Callable[[Bench], Awaitable[None]], path: str, tmp_path: Path, other_process: OtherProcess
) -> None:
    async def story() -> None:
        async with bench_of(path, tmp_path, other_process) as bench:
            await behaviour(bench)

    asyncio.run(story())
