"""The server is killed and started again with its workers alive: real processes, and every world goes on exactly."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.serve.logging_engine import lists_in
from tests.serve.restarted import Client, Server, staying
from tests.worker.counting import CountingEngine


def with_server(tmp_path: Path, work: Callable[[Server], Awaitable[None]]) -> None:
    """Run with a server that is ended, with its workers, whatever comes."""

    async def run() -> None:
        server = Server(folder=tmp_path)
        await server.start()
        try:
            await work(server)
        finally:
            with suppress(ProcessLookupError):
                assert await server.end() == 0

    asyncio.run(run())
    said = (tmp_path / "errors").read_text()
    assert "Traceback" not in said, said


def assert_exact(client: Client, lists: Path, seed: int) -> None:
    """Every frame came once, in order, and is that of a world that was never moved, given the same lists."""
    assert [header.frame for header, _ in client.frames] == list(range(len(client.frames)))
    known = lists_in(lists, seed)
    engine = CountingEngine()
    world = engine.open(seed)
    blocks = [engine.step(world, known[block]) for block in range(len(client.frames) // 2)]
    replayed = [frame.tobytes() for block in blocks for frame in block.frames]
    assert [pixels for _, pixels in client.frames][: len(replayed)] == replayed


@pytest.mark.slow
def test_a_killed_server_goes_on_with_every_world_and_with_the_same_workers(tmp_path: Path) -> None:
    async def work(server: Server) -> None:
        session = (await server.ask("POST", "sessions", seed=5, worker="worker-1"))["session"]
        pids = {name: row["pid"] for name, row in (await server.workers()).items()}
        async with staying(server, session) as client:
            await client.blocks(5)
            assert (await server.ask("POST", f"sessions/{session}/move", to="worker-2"))["outcome"] == "committed"
            await client.blocks(3)
            for _ in range(2):
                await server.kill()
                await server.start()
                await client.blocks(5)
            assert {name: row["pid"] for name, row in (await server.workers()).items()} == pids
            assert (await server.ask("POST", f"sessions/{session}/move", to="worker-1"))["outcome"] == "committed"
            await client.blocks(5)
            moves = (await server.ask("GET", "moves"))["moves"]
            assert [(move["outcome"], move["to"]) for move in moves] == [
                ("committed", "worker-2"),
                ("committed", "worker-1"),
            ]
            view = await server.ask("GET", f"sessions/{session}")
            assert (view["state"], view["worker"], view["epoch"], view["seed"]) == ("live", "worker-1", 3, 5)
        assert_exact(client, server.lists, 5)

    with_server(tmp_path, work)
