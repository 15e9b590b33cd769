"""A process that exports one arena by the path it is told, and does what it is told on its standard input.

    exporter.py shm SOCKET SIZE | exporter.py tcp ADDRESS SIZE

Takes ``export``, ``write OFFSET HEX``, ``withdraw``; answers each with a line; ends with its input.
"""

import asyncio
import functools
import sys
from pathlib import Path

from worldmove.state.arena import Arena
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.tcp import Tcp, TcpConfig


def path_of(kind: str, where: str) -> SharedMemory | Tcp:
    """The path of a name."""

    async def inline(function):  # type: ignore[no-untyped-def]
        return function()

    numbers = iter(range(1, 1 << 30))

    def token() -> bytes:
        return next(numbers).to_bytes(32, "little")

    if kind == "tcp":
        return Tcp(config=TcpConfig(host=where), tokens=token)
    return SharedMemory(config=ShmConfig(path=Path(where)), blocking=inline, tokens=token)


async def main(kind: str, where: str, size: int) -> None:
    arena = Arena(size, "exported")
    arena.buffer[:] = pattern(arena.size)
    path = path_of(kind, where)
    await path.start()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tickets: list[bytes] = []
    while words := (await reader.readline()).decode().split():
        match words:
            case ["export"]:
                tickets.append(await path.export(arena))
                answer = tickets[-1].hex()
            case ["write", offset, data]:
                arena.buffer[int(offset) : int(offset) + len(data) // 2] = bytes.fromhex(data)
                answer = "written"
            case ["withdraw"]:
                await path.withdraw(tickets[-1])
                answer = "withdrawn"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    await path.close()


@functools.cache
def pattern(size: int) -> bytes:
    """Bytes in which every place is told from its neighbours."""
    words = b"".join(((number * 2654435761) % (1 << 32)).to_bytes(4, "little") for number in range(16384))
    return (words * (size // len(words) + 1))[:size]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
