"""A client that reads slowly is waited for, and one that reads nothing is cut."""

import asyncio
import socket
from typing import Any

import pytest

from worldmove.serve.guard import Guard, ReadInTime
from worldmove.serve.limits import HttpLimits

REQUEST_S = 0.3
NUM_BYTES = 24 << 20


class Sending(ReadInTime):
    """Writes much at once."""

    def __init__(self, guard: Guard, made: "asyncio.Future[Sending]") -> None:
        self.guard = guard
        self.loop = asyncio.get_running_loop()
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(bytes(NUM_BYTES))
        self._made.set_result(self)


async def reader_of(guard: Guard) -> tuple[Any, socket.socket, Sending]:
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Sending] = loop.create_future()
    server = await loop.create_server(lambda: Sending(guard, made), "127.0.0.1", 0)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
    client.settimeout(0)
    await loop.sock_connect(client, server.sockets[0].getsockname())
    return server, client, await made


@pytest.mark.parametrize("reads", [True, False], ids=["slowly", "not at all"])
def test_who_takes_something_in_each_while_is_waited_for_and_who_takes_nothing_is_cut(*, reads: bool) -> None:
    async def run() -> None:
        cut = list[str]()
        guard = Guard(HttpLimits(request_s=REQUEST_S), cut.append)
        loop = asyncio.get_running_loop()
        server, client, sending = await reader_of(guard)
        with client:
            until = loop.time() + 5 * REQUEST_S
            while loop.time() < until:
                if reads:
                    await loop.sock_recv(client, 64 << 10)
                await asyncio.sleep(REQUEST_S / 10)
            assert sending.transport.is_closing() is not reads
            assert cut == ([] if reads else ["unread"])
            sending.transport.abort()
        server.close()

    asyncio.run(run())
