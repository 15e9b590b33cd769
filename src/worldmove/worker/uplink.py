"""The edge: a worker's link to its server, made again whenever it was cut."""

import asyncio
from collections.abc import Callable

from worldmove.errors import MessageError
from worldmove.worker.assemble import Assembly
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import ServerLink, server_link
from worldmove.worker.room import READ_BYTES, widen
from worldmove.worker.silence import until_silent

RECONNECT_S = 0.2
MOST_BETWEEN_LOOKS = 5
"""So many of these may pass between two looks for a server; what is more, this process has slept."""


class Uplink:
    """The server's link, over whichever connection there is now. What is sent while there is none is dropped."""

    def __init__(self) -> None:
        self.connection: ServerLink | None = None

    def send(self, message: object) -> None:
        if self.connection is not None:
            self.connection.send(message)  # type: ignore[arg-type]


async def stay_linked(config: WorkerConfig, assembly: Assembly, uplink: Uplink, stop: Callable[[], None]) -> None:
    """Keep a link to the server; end the process when it was gone for too long.

    A link that is cut as soon as it is made is none: there may be a server that wants nothing of this worker. Time in
    which this process itself did not run counts for nobody: a server may have come meanwhile.
    """
    loop = asyncio.get_running_loop()
    gone_s, looked_at = 0.0, loop.time()
    while gone_s < config.keep_s:
        gone_s += min(loop.time() - looked_at, MOST_BETWEEN_LOOKS * RECONNECT_S)
        looked_at = loop.time()
        try:
            reader, writer = await asyncio.open_unix_connection(config.socket_path, limit=READ_BYTES)
        except OSError:
            await asyncio.sleep(RECONNECT_S)
            continue
        widen(writer)
        link = server_link(reader, writer)
        uplink.connection, joined_at = link, loop.time()
        listening = asyncio.create_task(_cut_when_silent(link, config.silence_s, assembly.log))
        try:
            assembly.worker.joined()
            await link.take_all(assembly.worker.take)
        except MessageError as error:
            assembly.log("link_broken", why=str(error))
        finally:
            listening.cancel()
            uplink.connection = None
            link.close()
        if loop.time() - joined_at >= RECONNECT_S:
            gone_s, looked_at = 0.0, loop.time()
        else:
            await asyncio.sleep(RECONNECT_S)
    stop()


async def _cut_when_silent(link: ServerLink, silence_s: float, log: Callable[..., None]) -> None:
    """End a link over which nothing comes any more, though it is open: another one may carry."""
    await until_silent(lambda: link.num_taken, silence_s)
    log("link_silent", silence_s=silence_s)
    link.abort()
