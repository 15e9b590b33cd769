"""A server for a bench, in a process of its own: in one loop with the player each would wait for the other's frames."""

import asyncio
import multiprocessing
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

import structlog

from worldmove.errors import UserError
from worldmove.serve.server import serving
from worldmove.serve.server_config import ServerConfig

STOP_S = 30.0


@asynccontextmanager
async def served(config: ServerConfig, stage: Callable[[str], None]) -> AsyncIterator[str]:
    """Start a server, and yield its URL; it ends with the block. Raises UserError if it could not be started."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(config, there), name="worldmove-bench-server")
    process.start()
    there.close()
    try:
        yield await asyncio.to_thread(_url, here, stage)
    finally:
        here.close()
        await asyncio.to_thread(process.join, STOP_S)
        if process.is_alive():
            process.kill()


def _url(connection: Connection, stage: Callable[[str], None]) -> str:
    while True:
        try:
            kind, text = connection.recv()
        except EOFError as error:
            raise UserError("the bench's server could not be started", code="no_server") from error
        if kind == "url":
            return str(text)
        stage(text)


def _serve(config: ServerConfig, connection: Connection) -> None:
    # Standard output is the bench's own.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    asyncio.run(_until_closed(config, connection))


async def _until_closed(config: ServerConfig, connection: Connection) -> None:
    async with serving(config, lambda text: connection.send(("stage", text))) as url:
        connection.send(("url", url))
        await asyncio.to_thread(_wait, connection)


def _wait(connection: Connection) -> None:
    try:
        connection.recv()
    except EOFError:
        return
