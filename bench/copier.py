"""A process of its own that copies an arena into another one when it is asked to: the peer of a move's pause.

Each answer has two copies. The first finds both arenas as a move finds them, not touched for some blocks; the
second runs at once after it, and is the faster one wherever caches are larger than a state.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from worldmove.cli.json_text import json_text
from worldmove.state.arena import Arena


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Two copies of the same bytes, ms."""

    first_ms: float
    again_ms: float


class Copier:
    """The process, as whoever measures sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def copy(self) -> Copies:
        """Have it copy twice."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the copier has no pipes")
        self._process.stdin.write(b"copy\n")
        first_ms, again_ms = json.loads(await self._process.stdout.readline())
        return Copies(first_ms=first_ms, again_ms=again_ms)


@asynccontextmanager
async def copier(num_bytes: int) -> AsyncIterator[Copier]:
    """Give a copier of so many bytes while inside."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.copier",
        str(num_bytes),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Copier(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


def main() -> None:
    """Copy twice for every line read."""
    num_bytes = int(sys.argv[1])
    source, target = Arena(num_bytes, "bench-source"), Arena(num_bytes, "bench-target")
    for arena in (source, target):
        arena.poison()
    for _ in sys.stdin:
        print(json_text([_copy_ms(source, target), _copy_ms(source, target)]), flush=True)


def _copy_ms(source: Arena, target: Arena) -> float:
    begin = time.perf_counter()
    np.copyto(target.memory, source.memory)
    return round((time.perf_counter() - begin) * 1000, 4)


if __name__ == "__main__":
    main()
