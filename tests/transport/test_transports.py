"""The conformance suite over every path."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from tests.transport import exporter
from tests.transport.conformance import SIZE, SUITE, Bench
from tests.transport.conftest import OtherProcess
from tests.transport.exporter import pattern
from tests.transport.on_device import KIT, OnDevice
from worldmove.move.device_path import export_slot
from worldmove.state.arena import AnyArena, Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.lossy import LossPlan, Lossy
from worldmove.transport.peer import Peer
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.slow import Delay, Slow
from worldmove.transport.staged import Staged
from worldmove.transport.tcp import Tcp, TcpConfig
from worldmove.transport.throttled import Throttled, WithThrottled
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
    on_device = isinstance(transport, OnDevice)
    arena: AnyArena = DeviceArena(SIZE, "source", KIT) if on_device else Arena(SIZE, "source")
    exporter.write(arena, 0, pattern(SIZE))
    tickets: list[bytes] = []

    async def export() -> bytes:
        tickets.append(await export_slot(transport, arena))
        return tickets[-1]

    async def withdraw() -> None:
        await transport.withdraw(tickets[-1])

    async def write(offset: int, data: bytes) -> None:
        exporter.write(arena, offset, data)

    return Bench(transport=transport, export=export, withdraw=withdraw, write=write, joins=on_device)


def there(transport: Transport, other: OtherProcess) -> Bench:
    """A bench whose source is in the other process."""

    async def export() -> bytes:
        other.ask("write 1000 " + pattern(SIZE)[1000:1100].hex())
        return bytes.fromhex(other.ask("export"))

    async def withdraw() -> None:
        other.ask("withdraw")

    async def write(offset: int, data: bytes) -> None:
        other.ask(f"write {offset} {data.hex()}")

    joins = isinstance(transport, OnDevice)
    return Bench(transport=transport, export=export, withdraw=withdraw, write=write, joins=joins)


@asynccontextmanager
async def path_of(kind: str, folder: Path) -> AsyncIterator[Transport]:
    """A started path of a kind: a wrapped one wraps what the last word of its name says."""
    thread = OneThread("copy")
    shared = SharedMemory(config=ShmConfig(path=folder / "own.sock"), blocking=thread, tokens=Tokens(1 << 40))
    tcp = Tcp(config=TcpConfig(), tokens=Tokens(1 << 40))
    config = exporter.staged_config(str(folder / "own.ring"))
    staged = Staged(config=config, kit=KIT, new_thread=OneThread, tokens=Tokens(1 << 40))
    listening = (shared, tcp, staged)
    for path in listening:
        await path.start()
    *wrapped, last = kind.split()
    loopback = Loopback(blocking=thread, tokens=Tokens(0))
    peer = Peer(kit=KIT, cards=shared, blocking=thread)
    paths: dict[str, Transport] = {each.name: each for each in (*listening, loopback, peer)}
    inner = WRAPPERS[wrapped[0]](paths[last]) if wrapped else paths[last]
    try:
        yield OnDevice(inner) if last in ("peer", "staged") else inner
    finally:
        for path in listening:
            await path.close()
        thread.close()


WRAPPERS: dict[str, Callable[[Transport], Transport]] = {
    "throttled": lambda inner: Throttled(inner, rate_bytes_per_s=1e9, piece_bytes=50_000),
    "throttled-10gbit": lambda inner: WithThrottled({inner.name: inner})[f"throttled-10gbit-{inner.name}"],
    "lucky-lossy": lambda inner: Lossy(inner, rng=Random(1), plan=LossPlan(cut=0.0, silence=0.0, piece_bytes=50_000)),
    "slow": lambda inner: Slow(inner, rng=Random(1), delay=Delay(most_s=1e-5, piece_bytes=50_000)),
}

PATHS = (
    ("loopback", "one process"),
    ("throttled loopback", "one process"),
    ("lucky-lossy loopback", "one process"),
    ("slow loopback", "one process"),
    ("shm", "one process"),
    ("shm", "two processes"),
    ("throttled shm", "two processes"),
    ("throttled-10gbit shm", "two processes"),
    ("tcp", "one process"),
    ("tcp", "two processes"),
    ("throttled tcp", "two processes"),
    ("lucky-lossy tcp", "two processes"),
    ("slow tcp", "two processes"),
    ("peer", "one process"),
    ("staged", "one process"),
    ("staged", "two processes"),
    ("throttled staged", "two processes"),
    ("lucky-lossy staged", "two processes"),
)


@pytest.mark.parametrize(("kind", "where"), PATHS)
@pytest.mark.parametrize("behaviour", SUITE, ids=lambda behaviour: behaviour.__name__)
def test_a_path(
    behaviour: Callable[[Bench], Awaitable[None]],
    kind: str,
    where: str,
    tmp_path: Path,
    others: Mapping[str, OtherProcess],
) -> None:
    async def story() -> None:
        async with path_of(kind, tmp_path) as path:
            two = where == "two processes"
            await behaviour(there(path, others[kind.rpartition(" ")[2]]) if two else here(path))

    asyncio.run(story())
