"""A worker's link to its server, led through the test: it can be cut, shut in one direction, or carry one way only."""

import asyncio
from contextlib import suppress
from enum import Enum
from pathlib import Path


class Way(Enum):
    """Which way bytes go."""

    UP = "to the server"
    DOWN = "to the worker"


class Cable:
    """All connections of one worker, of which there is one at a time."""

    def __init__(self) -> None:
        self._carries = {way: asyncio.Event() for way in Way}
        self._writers: dict[Way, asyncio.StreamWriter] = {}
        self.num_connections = 0
        self.mend()

    def cut(self) -> None:
        """Close both ends."""
        for writer in self._writers.values():
            writer.transport.abort()

    def shut(self, way: Way) -> None:
        """Say to the reader of one direction that nothing more will come; the other direction carries on."""
        self._writers[way].write_eof()

    def hold(self, way: Way) -> None:
        """Carry nothing in one direction, and say nothing of it, until ``mend``."""
        self._carries[way].clear()

    def mend(self) -> None:
        """Carry both ways; what was held comes through."""
        for carries in self._carries.values():
            carries.set()

    async def join(self, worker: tuple[asyncio.StreamReader, asyncio.StreamWriter], server: Path) -> None:
        """Carry between a worker that has connected and the server until both directions have ended."""
        from_server, to_server = await asyncio.open_unix_connection(server)
        from_worker, to_worker = worker
        self.num_connections += 1
        self._writers = {Way.UP: to_server, Way.DOWN: to_worker}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(Way.UP, from_worker, to_server))
                both.create_task(self._carry(Way.DOWN, from_server, to_worker))
        finally:
            for writer in (to_server, to_worker):
                writer.close()

    async def _carry(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, RuntimeError):
            while data := await reader.read(1 << 16):
                await self._carries[way].wait()
                writer.write(data)
                await writer.drain()
            writer.write_eof()


class Cables:
    """One cable for each worker, through a socket beside the server's."""

    def __init__(self) -> None:
        self._cables: dict[str, Cable] = {}
        self._listening: list[asyncio.Server] = []
        self._carrying: dict[asyncio.Task[None], None] = {}

    def of(self, worker: str) -> Cable:
        return self._cables[worker]

    async def between(self, worker: str, server: Path) -> Path:
        """Return where a worker is to connect instead."""
        path = server.with_name(f"{worker}.cable")
        if worker not in self._cables:
            cable = self._cables[worker] = Cable()

            def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.create_task(cable.join((reader, writer), server))
                self._carrying[task] = None
                task.add_done_callback(self._carrying.pop)

            self._listening.append(await asyncio.start_unix_server(joined, path))
        return path

    async def close(self) -> None:
        """Carry no more."""
        for listening in self._listening:
            listening.close()
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
