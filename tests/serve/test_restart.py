"""The server is killed and started again with its workers alive: real processes, and every world goes on exactly."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.serve.logging_engine import lists_in
from tests.serve.restarted import Client, Server, staying
from tests.worker.counting import CountingEngine
from worldmove.errors import UserError
from worldmove.serve.state_folder import LEDGER, state_folder


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


@pytest.mark.slow
def test_a_worker_that_died_meanwhile_is_replaced_its_worlds_are_lost_and_the_others_go_on(tmp_path: Path) -> None:
    async def work(server: Server) -> None:
        one, other = [
            (await server.ask("POST", "sessions", seed=seed, worker=worker))["session"]
            for seed, worker in ((1, "worker-1"), (2, "worker-2"))
        ]
        before = await server.workers()
        async with staying(server, one) as client, staying(server, other) as losing:
            await client.blocks(2)
            await losing.blocks(2)
            await server.kill()
            os.kill(before["worker-2"]["pid"], signal.SIGKILL)
            await server.start()
            await losing.until(lambda: losing.heard("lost"))
            await client.blocks(4)
            views = {row["session"]: row["state"] for row in (await server.ask("GET", "sessions"))["sessions"]}
            assert views == {one: "live", other: "lost"}
            await a_second_server_is_kept_out(server)
            await a_ledger_that_is_locked_stops_moves_and_nothing_else(server, client, one)
            after = await server.workers()
            assert [after[name]["incarnation"] for name in ("worker-1", "worker-2")] == [1, 2]
            assert after["worker-1"]["pid"] == before["worker-1"]["pid"]
            assert (await server.ask("POST", f"sessions/{one}/move"))["outcome"] == "committed"
            await client.blocks(2)
        assert_exact(client, server.lists, 1)

    with_server(tmp_path, work)


async def a_second_server_is_kept_out(server: Server) -> None:
    with pytest.raises(UserError, match="lives in"), state_folder(server.state):
        pass


async def a_ledger_that_is_locked_stops_moves_and_nothing_else(server: Server, client: Client, session: str) -> None:
    while (await server.workers()).get("worker-2", {}).get("state") != "ready":  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    other = sqlite3.connect(server.state / LEDGER, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = (await server.ask("POST", f"sessions/{session}/move"))["move"]
    assert (refused["outcome"], refused["reason"], refused["runs_at"]) == ("refused", "ledger", "worker-1")
    await client.blocks(4)
    health = await server.ask("GET", "../healthz")
    assert "in use by another process" in health["ledger"]
    other.execute("ROLLBACK")
    other.close()
    while (await server.ask("GET", "../healthz"))["ledger"] != "ok":  # noqa: ASYNC110
        await asyncio.sleep(0.1)
