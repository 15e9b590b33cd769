"""The bench's player."""

import asyncio

import pytest
from websockets.asyncio.server import ServerConnection, serve

from worldmove.cli.benches.player import playing
from worldmove.errors import TransportError


def test_who_waits_for_frames_of_a_world_that_is_shown_no_more_is_told_why() -> None:
    async def ends(connection: ServerConnection) -> None:
        await connection.close(4010, "the world was lost")

    async def story() -> None:
        async with serve(ends, "127.0.0.1", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with playing(f"http://127.0.0.1:{port}", "s") as seen, asyncio.timeout(5):
                with pytest.raises(TransportError, match="the world was lost"):
                    await seen.frames_later(1)

    asyncio.run(story())
