"""A process that exports one arena by the path it is told, and does what it is told on its standard input.

Takes ``export``, ``write OFFSET HEX``, ``withdraw``; answers each with a line; ends with its input.
"""

import asyncio
import functools
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from worldmove.move.device_path import export_slot
from worldmove.state.arena import AnyArena, Arena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kit_double import DoubleKit
from worldmove.transport.ring import RingShape
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.staged import Staged
from worldmove.transport.staged_serving import StagedConfig
from worldmove.transport.tcp import Tcp, TcpConfig
from worldmove.units import PAGE_BYTES
from worldmove.worker.threads import OneThread

KIT = DoubleKit()


AnyPath = SharedMemory | Tcp | Staged


def path_of(kind: str, where: str) -> AnyPath:
    """The path of a name."""

    async def inline(function):  # type: ignore[no-untyped-def]
        return function()

    numbers = iter(range(1, 1 << 30))

    def token() -> bytes:
        return next(numbers).to_bytes(32, "little")

    if kind == "tcp":
        return Tcp(config=TcpConfig(host=where), tokens=token)
    if kind == "staged":
        return Staged(config=staged_config(where), kit=KIT, new_thread=OneThread, tokens=token)
    return SharedMemory(config=ShmConfig(path=Path(where)), blocking=inline, tokens=token)


def begin(kind: str, where: str, size: int, orders: Connection, answers: Connection) -> None:
    """Export by ``shm`` or ``staged`` at a socket, or by ``tcp`` at an address. Two pipes become input and output."""
    os.dup2(orders.fileno(), 0)
    os.dup2(answers.fileno(), 1)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    orders.close()
    answers.close()
    asyncio.run(main(kind, where, size))


async def main(kind: str, where: str, size: int) -> None:
    path = path_of(kind, where)
    arena: AnyArena = DeviceArena(size, "exported", KIT) if kind == "staged" else Arena(size, "exported")
    write(arena, 0, pattern(arena.size))
    await path.start()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tickets: list[bytes] = []
    while words := (await reader.readline()).decode().split():
        match words:
            case ["export"]:
                tickets.append(await export_slot(path, arena))
                answer = tickets[-1].hex()
            case ["write", offset, data]:
                write(arena, int(offset), bytes.fromhex(data))
                answer = "written"
            case ["withdraw"]:
                await path.withdraw(tickets[-1])
                answer = "withdrawn"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    await path.close()


def staged_config(where: str) -> StagedConfig:
    """Of a ring that is small against what is pulled: every buffer is used many times."""
    return StagedConfig(path=Path(where), shape=RingShape(buffer_bytes=PAGE_BYTES, num_buffers=3))


def write(arena: AnyArena, offset: int, data: bytes) -> None:
    """Write into a slot."""
    if isinstance(arena, DeviceArena):
        arena.write(offset, np.frombuffer(data, dtype=np.uint8))
    else:
        arena.buffer[offset : offset + len(data)] = data


@functools.cache
def pattern(size: int) -> bytes:
    """Bytes in which every place is told from its neighbours."""
    words = b"".join(((number * 2654435761) % (1 << 32)).to_bytes(4, "little") for number in range(16384))
    return (words * (size // len(words) + 1))[:size]
