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
from worldmove.transport.staged import Staged
from worldmove.transport.staged_serving import StagedConfig
from worldmove.transport.tcp import Tcp, TcpConfig
from worldmove.transport.throttled import WithThrottled
from worldmove.transport.wrappers import Corrupting
from worldmove.worker.threads import OneThread


class LocalTransports:
    """Shared memory and TCP, and for a device its own two; each of them damaging, breaking, slow, or of a set speed."""

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

        shm = SharedMemory(config=ShmConfig(path=socket_path), blocking=copy_thread, tokens=token)
        tcp_path = Tcp(config=tcp, tokens=token, blocking=None if kit is None else copy_thread)
        self._pulling: OneThread | None = None
        self._listening: list[SharedMemory | Tcp | Staged] = [shm, tcp_path]
        bases: list[Transport] = [shm, tcp_path]
        if kit is not None:
            config = StagedConfig(path=socket_path.with_suffix(".ring"))
            staged = Staged(config=config, kit=kit, new_thread=OneThread, tokens=token)
            self._listening.append(staged)
            self._pulling = OneThread("pull")  # its waits are nobody else's: passes of other sessions go on meanwhile
            bases += [Peer(kit=kit, cards=shm, blocking=self._pulling), staged]
        paths: list[Transport] = []
        for path in bases:
            paths += [path, Corrupting(path, rng=rng), Lossy(path, rng=rng), Slow(path, rng=rng)]
        self.by_name: Mapping[str, Transport] = WithThrottled({path.name: path for path in paths})
        """Those that are named here, and each of them at any speed: ``throttled-1gbit-shm``."""

    async def start(self) -> None:
        """Let arenas be had. Raises TransportError."""
        try:
            for path in self._listening:
                await path.start()
        except TransportError:
            await self.close()
            raise

    async def close(self) -> None:
        """End every export."""
        for path in reversed(self._listening):
            await path.close()
        if self._pulling is not None:
            self._pulling.close()
