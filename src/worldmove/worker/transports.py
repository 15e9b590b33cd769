"""The paths that a worker's process offers, by the name that a move gives."""

import random
from collections.abc import Callable
from pathlib import Path

from worldmove.transport.base import Blocking, Transport
from worldmove.transport.descriptors import TOKEN_BYTES
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.wrappers import Corrupting


class LocalTransports:
    """Shared memory between the processes of one host; and the same path, damaging what it carries."""

    def __init__(
        self, socket_path: Path, copy_thread: Blocking, *, random_bytes: Callable[[int], bytes], rng: random.Random
    ) -> None:
        self._shm = SharedMemory(
            config=ShmConfig(path=socket_path),
            blocking=copy_thread,
            tokens=lambda: random_bytes(TOKEN_BYTES),
        )
        corrupting = Corrupting(self._shm, rng=rng)
        self.by_name: dict[str, Transport] = {path.name: path for path in (self._shm, corrupting)}

    async def start(self) -> None:
        """Let arenas be had. Raises TransportError."""
        await self._shm.start()

    async def close(self) -> None:
        """End every export."""
        await self._shm.close()
