"""A server whose log goes nowhere plays on, moves, and ends in order; so do its workers, and all of its libraries."""

import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from tests.cli.outputs import full, gone
from tests.own_path import with_own_path
from tests.serve.test_server import playing
from worldmove.serve.house import House

COMMAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()")
SERVE = ("serve", "-v", "--engine", "python:tests.serve.loud_engine:engine", "--port", "0", "--json")
PROCESSES = {"server", "worker-1", "worker-2"}
END_S = 20


@contextmanager
def unread() -> Iterator[int]:
    """A pipe that is full already, and that nobody reads."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 512)
    os.set_blocking(writer, True)
    yield writer
    os.close(writer)
    os.close(reader)


@contextmanager
def closed() -> Iterator[None]:
    """Nothing: it was closed before the command began."""
    yield None


@dataclass
class Served:
    process: "subprocess.Popen[bytes]"
    url: str
    http: httpx.AsyncClient

    async def get(self, path: str) -> Any:
        return (await self.http.get(path)).raise_for_status().json()

    async def dropped(self) -> set[str]:
        """Return which processes have said something in vain."""
        text = (await self.http.get("/metrics")).text
        found = re.findall(r'^worldmove_log_lines_dropped_total\{process="(.+)"\} (.+)$', text, re.MULTILINE)
        assert {process for process, _ in found} == PROCESSES
        return {process for process, num in found if float(num)}


@asynccontextmanager
async def served(errors: int | None) -> AsyncIterator[Served]:
    command = [*COMMAND, *SERVE] if errors is not None else ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, *SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=with_own_path()) as process:
        try:
            assert process.stdout is not None
            async with asyncio.timeout(100):
                url = json.loads(await asyncio.to_thread(process.stdout.readline))["url"]
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as http:
                yield Served(process, url, http)
        finally:
            process.kill()


async def no_http(url: str) -> None:
    """Say what is no HTTP, which the gateway's library logs."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x00 no request\r\n\r\n")
    await reader.read()
    writer.close()
    await writer.wait_closed()


async def plays_moves_and_ends(server: Served) -> None:
    session = (await server.http.post("/api/sessions", json={"seed": 3, "worker": "worker-1"})).json()["session"]
    async with playing(cast("House", SimpleNamespace(url=server.url)), session) as client:
        await client.blocks(20)
        moved = (await server.http.post(f"/api/sessions/{session}/move", json={"to": "worker-2"})).json()
        assert moved["outcome"] == "committed", moved
        await client.press(("up", True))
        await client.blocks(20)
        for _ in range(20):
            await no_http(server.url)
        workers = {view["worker"]: view for view in (await server.get("/api/workers"))["workers"]}
        os.kill(workers["worker-1"]["pid"], signal.SIGKILL)
        await client.blocks(20)
    assert (await server.http.delete(f"/api/sessions/{session}")).status_code == 204


@pytest.mark.slow
@pytest.mark.parametrize("place", [unread, gone, full, closed])
def test_a_server_and_its_workers_play_on_whatever_their_log_leads_to(place: Callable[[], Any]) -> None:
    async def run() -> None:
        with place() as errors:
            async with served(errors) as server:
                await plays_moves_and_ends(server)
                lossy = await server.dropped() - {"worker-1"}  # it was killed: one that counts anew takes its place
                assert lossy == (PROCESSES - {"worker-1"} if place in (gone, full) else set())
                began = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(server.process.wait, END_S) == 0
                assert time.monotonic() - began < END_S

    asyncio.run(run())


@pytest.mark.slow
def test_a_log_that_is_read_has_all_that_was_said_as_lines_of_its_own() -> None:
    async def run() -> bytes:
        reader, writer = os.pipe()
        found: list[bytes] = []

        def read() -> None:
            while piece := os.read(reader, 65536):
                found.append(piece)

        reading = asyncio.create_task(asyncio.to_thread(read))
        try:
            async with served(writer) as server:
                os.close(writer)
                await plays_moves_and_ends(server)
                assert await server.dropped() == set()
                server.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(server.process.wait, END_S) == 0
        finally:
            await reading
            os.close(reader)
        return b"".join(found)

    lines = asyncio.run(run()).decode().splitlines()
    said = [json.loads(line) for line in lines if line.startswith('{"')]
    logged = [line for line in said if line.get("logger") == "loud"]
    assert len(logged) >= 40
    assert all(line["level"] == "error" and "ValueError: logged" in line["exception"] for line in logged)
    assert {"worker_ready", "worker_ended", "move_phase"} <= {line["event"] for line in said}
    assert [line for line in lines if line.startswith("printed at block")]
    assert [line for line in lines if "move_ended" in line]
    assert sum("Invalid HTTP request" in line and "uvicorn" in line for line in lines) == 20


@pytest.mark.slow
def test_a_server_whose_address_cannot_be_written_says_it_on_standard_error_and_goes_on() -> None:
    with (
        full() as out,
        subprocess.Popen([*COMMAND, *SERVE], stdout=out, stderr=subprocess.PIPE, env=with_own_path()) as process,
    ):
        try:
            assert process.stderr is not None
            said = next(line for line in process.stderr if b"It answers at" in line).decode()
            url = said.split("It answers at ")[1].split(";")[0]
            assert httpx.get(f"{url}/healthz", trust_env=False, timeout=20).status_code == 200
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=END_S)
            assert process.returncode == 0
        finally:
            process.kill()
