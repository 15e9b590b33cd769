"""The paths that a worker's process offers, by the name that a move gives."""

import random
from collections.abc import Callable
from pathlib import Path

from worldmove.errors import TransportError
from worldmove.transport.base import Blocking, Transport
from worldmove.transport.descriptors import TOKEN_BYTES
from worldmove.transport.lossy import Lossy
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.slow import Slow
from worldmove.transport.tcp import Tcp, TcpConfig
from worldmove.transport.wrappers import Corrupting


class LocalTransports:
    """Shared memory and TCP; and each of them damaging what it carries, breaking now and then, or slow."""

    def __init__(
        self,
        socket_path: Path,
        copy_thread: Blocking,
        *,
        tcp: TcpConfig,
        random_bytes: Callable[[int], bytes],
        rng: random.Random,
    ) -> None:
        def token() -> bytes:
            return random_bytes(TOKEN_BYTES)

        self._shm = SharedMemory(config=ShmConfig(path=socket_path), blocking=copy_thread, tokens=token)
        self._tcp = Tcp(config=tcp, tokens=token)
        paths: list[Transport] = []
        for path in (self._shm, self._tcp):
            paths += [path, Corrupting(path, rng=rng), Lossy(path, rng=rng), Slow(path, rng=rng)]
        self.by_name: dict[str, Transport] = {path.name: path for path in paths}

    async def start(self) -> None:
        """Let arenas be had. Raises TransportError."""
        await self._shm.start()
        try:
            await self._tcp.start()
        except TransportError:
            await self._shm.close()
            raise

    async def close(self) -> None:
        """End every export."""
        await self._tcp.close()
        await self._shm.close()
