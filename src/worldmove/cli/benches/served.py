"""A server for a bench, in a process of its own: in one loop with the player each would wait for the other's frames.

It listens at the gateway's door, so that whoever measures can ask when each block came, and when it was due.
"""

import asyncio
import multiprocessing
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from worldmove.cli.benches.tap import Arrival, Tap, listen
from worldmove.cli.log import lines
from worldmove.errors import UserError
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.process_log import END_S, configure_log
from worldmove.worker.standard_streams import take_over, written_out

STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server answers, how its engine's blocks are cut, and what its workers measured before their hello."""

    url: str
    frames_per_block: int
    period_s: float
    rates: dict[str, dict[str, float]]
    """By worker."""


class Served:
    """A server that runs, seen from the bench's process."""

    def __init__(self, address: Address, connection: Connection) -> None:
        self.address = address
        self._connection = connection

    async def arrivals(self, session: str) -> list[Arrival]:
        """Return when each block of a session has come to the gateway so far, in order."""
        return await asyncio.to_thread(self._asked, session)

    def _asked(self, session: str) -> list[Arrival]:
        self._connection.send(session)
        found: list[Arrival] = self._connection.recv()
        return found


@asynccontextmanager
async def served(config: ServerConfig, stage: Callable[[str], None]) -> AsyncIterator[Served]:
    """Start a server; it ends with the block. Raises UserError if it could not be started."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(config, there), name="worldmove-bench-server")
    process.start()
    there.close()
    try:
        yield Served(await asyncio.to_thread(_address, here, stage), here)
    finally:
        here.close()
        await asyncio.to_thread(process.join, STOP_S)
        if process.is_alive():
            process.kill()


def _address(connection: Connection, stage: Callable[[str], None]) -> Address:
    while True:
        try:
            said: str | Address = connection.recv()
        except EOFError as error:
            raise UserError("the bench's server could not be started", code="no_server") from error
        if isinstance(said, Address):
            return said
        stage(said)


def _serve(config: ServerConfig, connection: Connection) -> None:
    # Standard output is the bench's own.
    take_over()
    configure_log("warning", lines(colors=False))
    try:
        asyncio.run(_until_closed(config, connection))
    finally:
        written_out(sys.stderr, END_S)


async def _until_closed(config: ServerConfig, connection: Connection) -> None:
    async with inhabited(config, connection.send) as house:
        tap, port = listen(house.gateway)
        house.controller.attach(port)
        spec = house.gateway.config.live.spec
        rates = {view.name: dict(view.rates) for view in house.controller.workers()}
        connection.send(
            Address(url=house.url, frames_per_block=spec.frames_per_block, period_s=spec.period_s, rates=rates)
        )
        await _answer(connection, tap)


async def _answer(connection: Connection, tap: Tap) -> None:
    """Say what is asked, until the bench lets go."""
    while True:
        try:
            session = await asyncio.to_thread(connection.recv)
        except EOFError:
            return
        connection.send(tap.arrivals(session))
