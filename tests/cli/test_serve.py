"""``serve``, ``demo``, ``doctor`` and ``bench move``: how they begin and end, as processes where it matters."""

import json
import multiprocessing
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import msgspec
import pytest

from tests.cli.command import worldmove
from tests.forks import FORKS
from tests.own_path import with_own_path
from worldmove.cli.exits import ExitCode
from worldmove.cli.output import Verbosity
from worldmove.cli.start import Start, config_of
from worldmove.limits import MAX_ARENA_BYTES
from worldmove.worker.config import WorkerConfig

ENVIRONMENT = {name: value for name, value in with_own_path().items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
COMMAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()")
TINY = ("--engine", "reference:tiny")


def begun(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def is_running(pid: int) -> bool:
    """Whether a process is there and not merely unburied."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return "State:\tZ" not in status


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [int(child) for child in listed.split()]


@pytest.mark.slow
def test_a_server_says_where_it_answers_and_ends_with_0_and_without_workers_at_sigterm() -> None:
    with begun("serve", *TINY, "--port", "0", "--json") as server:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        assert (started["schema"], started["version"], started["pid"]) == ("worldmove.serve", 1, server.pid)
        with build_opener(ProxyHandler({})).open(f"{started['url']}/api/workers", timeout=60) as answer:
            workers = [worker["pid"] for worker in json.load(answer)["workers"]]
        assert len(workers) == 2
        assert all(is_running(pid) for pid in workers)
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=60)
        assert server.returncode == ExitCode.DONE
        assert "Traceback" not in err
        assert not any(is_running(pid) for pid in workers)


@pytest.mark.slow
def test_a_server_that_is_interrupted_while_it_starts_leaves_no_worker_behind() -> None:
    with begun("serve", *TINY, "--workers", "1", "--port", "0") as server:
        deadline = time.monotonic() + 60
        while not (workers := children(server.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=60)
        assert server.returncode == ExitCode.DONE
        assert "Traceback" not in err
        assert not any(is_running(pid) for pid in workers)


def test_a_taken_port_is_one_sentence_before_anything_is_started() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = worldmove("demo", "--port", port)
    assert ran.status == ExitCode.USAGE
    assert ran.err.splitlines() == [
        f"Port {port} at 127.0.0.1 cannot be used (Address already in use); choose another with --port."
    ]


def test_weights_that_are_not_there_are_one_sentence_and_as_json_one_document() -> None:
    ran = worldmove("serve", "--engine", "python:tests.cli.broken:engine", "--port", "0", "--json")
    assert ran.status == ExitCode.USAGE
    assert ran.document["error"]["code"] == "bad_weights"
    assert "Traceback" not in ran.err


def test_an_engine_that_there_is_not_is_answered_with_those_there_are() -> None:
    ran = worldmove("serve", "--engine", "reference:iland", "--port", "0")
    assert ran.status == ExitCode.USAGE
    assert "reference:island" in ran.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_slots_may_be_larger_and_their_size_is_bounded(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Start] = []
    monkeypatch.setattr("worldmove.cli.serving.start", lambda start, *_, **__: told.append(start))
    assert worldmove(command).status == ExitCode.DONE
    assert worldmove(command, "--slot-mib", "48").status == ExitCode.DONE
    assert [config_of(start, Verbosity()).worker.arena_bytes for start in told] == [0, 48 << 20]
    most = MAX_ARENA_BYTES >> 20
    assert worldmove(command, "--slot-mib", str(most)).status == ExitCode.DONE
    msgspec.convert(msgspec.to_builtins(config_of(told[-1], Verbosity()).worker), WorkerConfig)
    for wrong in ("-1", str(most + 1), "1.5", "large"):
        assert worldmove(command, "--slot-mib", wrong).status == ExitCode.USAGE


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_what_makes_no_engine_is_one_sentence(command: str) -> None:
    where = ("--port", "0") if command == "serve" else ()
    ran = worldmove(command, "--engine", "python:os:strerror", *where)
    assert ran.status == (ExitCode.USAGE if command == "serve" else ExitCode.REFUSED), ran.err
    assert "is no engine: str has no spec" in (ran.out + ran.err).replace("\n", " ")
    assert "Unexpected" not in ran.err


@pytest.mark.parametrize("name", ["server.sock", "lock", "ledger.sqlite"])
def test_a_folder_with_the_name_of_a_servers_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    ran = worldmove("serve", *TINY, "--port", "0", "--state", str(tmp_path))
    assert ran.status == ExitCode.USAGE, ran.err
    assert str(tmp_path) in ran.err
    assert name in ran.err
    assert "Unexpected" not in ran.err


@pytest.mark.slow
def test_doctor_tries_this_machine_without_a_server() -> None:
    ran = worldmove("doctor", *TINY, "--json")
    assert ran.status == ExitCode.DONE
    found = ran.document
    assert {check["name"]: check["ok"] for check in found["checks"]} == {
        "memory that processes share": True,
        "weights and engine": True,
        "the canary repeats": True,
    }
    assert found["environment"]["engine.preset"] == "tiny"


@pytest.mark.slow
def test_bench_move_measures_moves_and_a_copy_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: FORKS)  # five imports of torch are most of its time
    ran = worldmove(
        "bench",
        "move",
        "--preset",
        "tiny",
        "-n",
        "2",
        "--repeats",
        "2",
        "--file-repeats",
        "1",
        "--no-scattered",
        "--json",
    )
    assert ran.status == ExitCode.DONE
    found = ran.document
    assert found["schema"] == "worldmove.bench.move"
    assert found["outcomes"] == {"committed": 2}
    assert found["pause_ms"]["median"] > 0
    assert found["copy_ms"]["median"] > 0
    assert 0 < found["match_ms"]["median"] < found["pause_ms"]["median"]
    assert (found["frames_damaged"], found["frames_missing"], found["checks_unequal"]) == (0, 0, 0)
    assert found["between_processes"]["slot-resident"]["num_bytes"] == found["num_bytes"]
    assert found["hardware"]["cores"] >= 1
    assert found["commit"]["sha"]
    assert found["engine"] == "reference:tiny"
