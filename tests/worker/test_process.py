"""A worker's process at its edges."""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.own_path import with_own_path
from worldmove.worker import uplink
from worldmove.worker.config import WorkerConfig
from worldmove.worker.link import frame
from worldmove.worker.messages import Beat
from worldmove.worker.process import settle
from worldmove.worker.silence import until_silent
from worldmove.worker.uplink import Uplink, stay_linked

SILENCE_S = 0.24
BEAT = frame(msgspec.msgpack.encode(Beat(number=1)))


@asynccontextmanager
async def linked(folder: Path, beats: list[int]) -> AsyncIterator[tuple[list[int], list[str]]]:
    """A worker's end of links to a server that sends so many beats over each, and then nothing, and closes none.

    Yields a number for each link that was made, and what was logged.
    """
    made: list[int] = []
    logged: list[str] = []
    serving: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        made.append(len(made))
        try:
            for _ in range(beats[min(made[-1], len(beats) - 1)]):
                writer.write(BEAT)
                await asyncio.sleep(SILENCE_S / 4)
            await reader.read()
        finally:
            writer.close()

    path = folder / "server.sock"
    server = await asyncio.start_unix_server(serve, path)
    worker = SimpleNamespace(joined=lambda: None, take=lambda message: None)
    assembly: Any = SimpleNamespace(worker=worker, log=lambda event, **_: logged.append(event))
    config = WorkerConfig(engine="none", socket_path=str(path), silence_s=SILENCE_S)
    linking = asyncio.create_task(stay_linked(config, assembly, Uplink(), lambda: None))
    try:
        yield made, logged
    finally:
        server.close()
        for task in (linking, *serving):
            task.cancel()
        await asyncio.gather(linking, *serving, return_exceptions=True)
        await asyncio.sleep(0)  # the sockets are closed


@pytest.mark.parametrize("beats", [[0, 99], [3, 99]], ids=["from the beginning", "after some beats"])
def test_a_link_that_is_open_and_brings_nothing_is_made_again(tmp_path: Path, beats: list[int]) -> None:
    async def main() -> None:
        async with linked(tmp_path, beats) as (made, logged):
            await asyncio.sleep(SILENCE_S * 3.5)
            assert (made, logged) == ([0, 1], ["link_silent"])

    asyncio.run(main())


def test_a_link_that_brings_beats_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path, [99]) as (made, logged):
            await asyncio.sleep(SILENCE_S * 3)
            assert (made, logged) == ([0], [])

    asyncio.run(main())


def test_a_process_that_did_not_run_has_heard_no_silence() -> None:
    """Its loop stands still for longer than a silence; what came meanwhile is heard when it runs again."""

    async def main() -> None:
        listening = asyncio.create_task(until_silent(lambda: 0, SILENCE_S))
        await asyncio.sleep(0)
        time.sleep(SILENCE_S * 1.5)
        await asyncio.sleep(SILENCE_S / 4)
        assert not listening.done()
        await asyncio.wait_for(listening, SILENCE_S * 3)

    asyncio.run(main())


@pytest.mark.parametrize("comes", [True, False])
def test_a_process_that_did_not_run_has_not_been_without_a_server_for_that_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, comes: bool
) -> None:
    """It was stopped while its server was away: by the time it runs again there may be one, and its worlds go on."""
    monkeypatch.setattr(uplink, "RECONNECT_S", 0.02)
    path, ended, made = tmp_path / "server.sock", list[float](), list[int]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(1)
        await reader.read()
        writer.close()

    async def main() -> float:
        clock = asyncio.get_running_loop().time
        worker = SimpleNamespace(joined=lambda: None, take=lambda message: None)
        assembly: Any = SimpleNamespace(worker=worker, log=lambda event, **_: None)
        config = WorkerConfig(engine="none", socket_path=str(path), keep_s=0.4)
        linking = asyncio.create_task(stay_linked(config, assembly, Uplink(), lambda: ended.append(clock())))
        await asyncio.sleep(0.1)
        time.sleep(0.8)
        wakes_at = clock()
        server = await asyncio.start_unix_server(serve, path) if comes else None
        await asyncio.sleep(0.6)
        linking.cancel()
        await asyncio.gather(linking, return_exceptions=True)
        if server is not None:
            server.close()
        await asyncio.sleep(0)
        return wakes_at

    wakes_at = asyncio.run(main())
    assert (bool(made), bool(ended)) == (comes, not comes)
    assert comes or ended[0] - wakes_at > 0.1  # it has looked for one for the rest of its time


HUNG = """
import asyncio, time
import structlog
from worldmove.worker.process_end import exit_after
from worldmove.worker.threads import OneThread

async def main():
    engine = OneThread("engine")
    asyncio.ensure_future(engine(lambda: time.sleep(100)))
    await asyncio.sleep(0.05)
    exit_after(0.2, structlog.get_logger())
    engine.close()

asyncio.run(main())
"""


def test_a_process_whose_engine_does_not_return_ends_all_the_same() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HUNG], env=with_own_path(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert "something has not returned within 0.2 s" in ran.stdout + ran.stderr


def test_a_worker_that_has_settled_looks_for_garbage_again_and_not_at_what_was_there_before() -> None:
    """While it starts it looks for none."""
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.disable()
    there = [[] for _ in range(1000)]  # type: list[list[object]]
    try:
        settle()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(there)
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
