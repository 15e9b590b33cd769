"""Before there is a worker: what an engine raises ends its process in a sentence; who ends the process is obeyed."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.own_path import with_own_path
from tests.worker.wayward import WARMING
from worldmove.errors import EngineFailed, UserError, WorldMoveError
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine
from worldmove.worker.threads import OneThread
from worldmove.worker.warm_up import warm_up

SHAPE = "a block's frames are uint8 of 2x2x3x3, and the engine's are uint8 of 2x2x2x3"


def begun(name: str) -> WorldMoveError | None:
    """Build and warm up as a worker does, and return how that ends."""

    async def run() -> None:
        thread = OneThread("engine")
        try:
            engine = await thread(lambda: build_engine(name, 1))
            await thread(lambda: warm_up(engine, time.perf_counter))
        finally:
            thread.close()

    try:
        asyncio.run(run())
    except WorldMoveError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("interrupts_when_imported:x", UserError, "raised KeyboardInterrupt"),
        ("wayward:interrupts", UserError, "calling it raised KeyboardInterrupt"),
        ("wayward:Specless", UserError, "its spec raised KeyboardInterrupt"),
        ("wayward:Cold", EngineFailed, "the engine failed to warm up: KeyboardInterrupt()"),
        ("wayward:Shapeless", EngineFailed, SHAPE),
    ],
)
def test_an_engine_that_cannot_begin_is_told_in_a_sentence(name: str, kind: type[WorldMoveError], why: str) -> None:
    error = begun(f"python:tests.worker.{name}")
    assert type(error) is kind
    assert why in str(error)


def test_in_the_main_thread_an_interrupt_is_a_persons() -> None:
    with pytest.raises(KeyboardInterrupt):
        build_engine("python:tests.worker.wayward:interrupts", 1)


def worker(tmp_path: Path, engine: str) -> subprocess.Popen[str]:
    config = WorkerConfig(engine=f"python:tests.worker.{engine}", socket_path=str(tmp_path / "no.sock"))
    arguments = [sys.executable, "-m", "worldmove.worker", msgspec.json.encode(config).decode()]
    return subprocess.Popen(arguments, env=with_own_path(), stderr=subprocess.PIPE, text=True)


def test_a_worker_whose_engine_interrupts_does_not_start_and_says_why(tmp_path: Path) -> None:
    with worker(tmp_path, "wayward:Cold") as process:
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(60) == 1
    assert "worker_not_started" in said
    assert "the engine failed to warm up" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_worker_also_while_its_engine_computes(tmp_path: Path, number: signal.Signals) -> None:
    with worker(tmp_path, "wayward:Slow") as process:
        assert process.stderr is not None
        said = ""
        while WARMING not in said:
            said += process.stderr.readline() or pytest.fail(said)
        process.send_signal(number)
        said += process.stderr.read()
        assert process.wait(60) == 0
    assert "worker_ended" in said
    assert "Traceback" not in said
