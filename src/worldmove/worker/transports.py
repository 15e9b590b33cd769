"""The paths that a worker's process offers, by the name that a move gives."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from worldmove.errors import TransportError
from worldmove.state.memory import MemoryKit
from worldmove.transport.base import Blocking, Transport
from worldmove.transport.descriptors import TOKEN_BYTES
from worldmove.transport.lossy import Lossy
from worldmove.transport.peer import Peer
from worldmove.transport.shm import SharedMemory, ShmConfig
from worldmove.transport.slow import Slow
from worldmove.transport.tcp import Tcp, TcpConfig
from worldmove.transport.throttled import WithThrottled
from worldmove.transport.wrappers import Corrupting


class LocalTransports:
    """Shared memory and TCP; and each of them damaging, breaking now and then, slow, or of a set speed."""

    def __init__(
        self,
        socket_path: Path,
        copy_thread: Blocking,
        *,
        tcp: TcpConfig,
        kit: MemoryKit | None = None,
        random_bytes: Callable[[int], bytes],
        rng: random.Random,
    ) -> None:
        def token() -> bytes:
            return random_bytes(TOKEN_BYTES)

        self._shm = SharedMemory(config=ShmConfig(path=socket_path), blocking=copy_thread, tokens=token)
        self._tcp = Tcp(config=tcp, tokens=token, blocking=None if kit is None else copy_thread)
        paths: list[Transport] = []
        bases: list[Transport] = [self._shm, self._tcp]
        if kit is not None:
            bases.append(Peer(kit=kit, cards=self._shm, blocking=copy_thread))
        for path in bases:
            paths += [path, Corrupting(path, rng=rng), Lossy(path, rng=rng), Slow(path, rng=rng)]
        self.by_name: Mapping[str, Transport] = WithThrottled({path.name: path for path in paths})
        """Those that are named here, and each of them at any speed: ``throttled-1gbit-shm``."""

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
