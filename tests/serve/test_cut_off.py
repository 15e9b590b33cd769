"""Cutting a connection that may have ended by itself."""

import asyncio

from worldmove.serve.guard import cut_off

NUM_BYTES = 8 << 20


def test_a_connection_that_ended_once_its_last_bytes_were_taken_is_left_alone() -> None:
    """Such a transport has no loop any more; ``abort`` would raise."""

    async def story() -> None:
        ended: asyncio.Future[asyncio.WriteTransport] = asyncio.get_running_loop().create_future()

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(bytes(NUM_BYTES))  # more than the network takes: it is closed with some of it left
            writer.close()
            await writer.wait_closed()
            ended.set_result(writer.transport)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert len(await reader.read(-1)) == NUM_BYTES
            writer.close()
            transport = await ended
            assert isinstance(transport, asyncio.Transport)
            cut_off(transport)

    asyncio.run(story())


def test_one_that_is_open_is_ended() -> None:
    async def story() -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            transport = writer.transport
            assert isinstance(transport, asyncio.Transport)
            cut_off(transport)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(story())
