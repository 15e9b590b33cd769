"""A process that exports one arena by shared memory, and does what it is told on its standard input.

Prints a ticket in hex; then takes ``write OFFSET HEX``, ``withdraw``, ``try-to-die``; ends with its input.
"""

import asyncio
import sys
from pathlib import Path

from worldmove.state.arena import Arena
from worldmove.transport.shm import SharedMemory, ShmConfig


async def main(path: str, size: int) -> None:
    async def inline(function):  # type: ignore[no-untyped-def]
        return function()

    arena = Arena(size, "exported")
    arena.buffer[:] = pattern(arena.size)
    tokens = iter(range(1, 1 << 30))
    shared = SharedMemory(
        config=ShmConfig(path=Path(path)), blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "little")
    )
    await shared.start()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tickets: list[bytes] = []
    while words := (await reader.readline()).decode().split():
        match words:
            case ["export"]:
                tickets.append(await shared.export(arena))
                answer = tickets[-1].hex()
            case ["write", offset, data]:
                arena.buffer[int(offset) : int(offset) + len(data) // 2] = bytes.fromhex(data)
                answer = "written"
            case ["withdraw"]:
                await shared.withdraw(tickets[-1])
                answer = "withdrawn"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    await shared.close()


def pattern(size: int) -> bytes:
    """Bytes in which every place is told from its neighbours."""
    words = b"".join(((number * 2654435761) % (1 << 32)).to_bytes(4, "little") for number in range(16384))
    return (words * (size // len(words) + 1))[:size]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
